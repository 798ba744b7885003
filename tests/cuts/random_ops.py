"""Statements of random models (random_statements.py) with ops that few models have."""

from random_statements import has_rows, wide


def square(d, size=4):
    """A matrix near the unit, so that it has an inverse, distinct eigenvalues and a gradient."""
    a = d.tensor(lambda t: wide(t) and t.dim() >= 1)
    weight = d.parameter(size * size, d.shape(a)[-1])
    product = f"torch.tanh(F.linear({a}.reshape([-1, {d.shape(a)[-1]}])[:2], {weight})).view([-1, {size}, {size}])"
    return f"torch.diag(torch.tensor([1.0, 2.0, 4.0, 7.0])) + 0.2 * {product}"


def decomposed(d):
    matrix = [f"matrix = ({square(d)}).float()", "even = matrix @ matrix.transpose(1, 2) + torch.eye(4)"]
    return matrix + d.choice(
        ["out = torch.linalg.inv(matrix)"],
        ["out = torch.linalg.solve(matrix, even)"],
        ["out = torch.linalg.cholesky(even)"],
        ["out = torch.linalg.qr(matrix)[1]"],
        ["out = torch.linalg.svdvals(matrix)"],
        ["out = torch.linalg.eigvalsh(even)"],
        ["out = torch.linalg.det(matrix) * 0.02"],
        ["out = torch.logdet(even)"],
        ["out = torch.matrix_exp(matrix * 0.1)"],
        ["out = torch.linalg.matrix_power(matrix * 0.3, 3)"],
        ["out = torch.cholesky_solve(matrix, torch.linalg.cholesky(even))"],
        ["out = torch.triangular_solve(matrix, even)[0]"],
        ["out = torch.linalg.solve_triangular(even, matrix, upper=False)"],
        ["out = torch.tril(matrix).diagonal(0, 1, 2) + torch.diag_embed(matrix[:, 0])[:, 0]"],
    )


def scanned(d):
    """Along a dim, with indices in places."""
    a = d.tensor(lambda t: t.dim() >= 1 and 2 <= t.numel() <= 2000)
    i = d.dim(a)
    return d.choice(
        f"torch.cumprod(torch.sigmoid({a}), {i})",
        f"torch.logcumsumexp({a}, {i}) * 0.3",
        f"torch.prod(torch.sigmoid({a}) + 0.4, {i})",
        f"torch.kthvalue({a}, 1, {i})[0]",
        f"torch.quantile({a}.float(), 0.3, {i})",
        f"torch.cummin({a}, {i})[0]",
        f"torch.renorm({a}.reshape([{d.shape(a)[0]}, -1]), 2.0, 0, 0.7)",
        f"torch.trapezoid({a}, dim={i})",
        f"torch.nanmean({a}, {i})",
        f"torch.argsort({a}, dim={i}, stable=True).float() * 0.1 + {a}",
        f"{a} * torch.bucketize({a}.detach(), torch.tensor([-0.5, 0.0, 0.5])).float()",
        f"torch.gradient({a}, dim=[{i}])[0]",
        f"F.gumbel_softmax({a}, 0.7, False, dim={i})",
        f"F.softmin({a}, {i})",
        f"torch.special.entr(torch.sigmoid({a}))",
        f"torch.erf({a}) * torch.special.expit({a})",
        f"torch.std_mean({a}, [{i}])",
        f"torch.unflatten({a}.unsqueeze(-1), -1, [1, 1])",
        f"torch.heaviside({a}.detach(), torch.tensor(0.5)) * {a}",
        f"torch.nan_to_num(torch.log({a}), 0.1, 0.2, -0.3)",
        f"torch.frac({a}) + torch.fmod({a}, 0.7) + torch.remainder({a}, 0.3)",
        f"torch.xlogy({a}, torch.sigmoid({a}))",
    )


def selected(d):
    """As many elements as the data have it."""
    a = d.tensor(lambda t: has_rows(t) and t.numel() <= 2000)
    b = d.like(a)
    return d.choice(
        [f"out = {a} * torch.masked_select({b}, {b} > -9.0).mean()"],
        [f"found = {a}[{b} > 0.0]", f"out = {b} + torch.tanh(found).sum() * 0.1"],
        [f"where = torch.nonzero({a}.detach() > 0.2)", f"out = {a} * (1.0 + 0.1 * where.shape[0])"],
        [f"out = {a} * 1.0", f"out[{b} > 0.3] = 0.25"],
        [f"out = {a} * 1.0", f"found = {b}[{b} > 0.1]", f"out[{b} > 0.1] = torch.sin(found)"],
        [f"out = {a} * 1.0", f"out.masked_scatter_({b} > 0.0, torch.sin({b}))"],
        [f"kinds, places = torch.unique(tokens, return_inverse=True)",
         f"out = {a} * (places.float().mean() + kinds.shape[0])"],
        [f"rows = {a}.reshape([-1, {d.shape(a)[-1]}])", "best = torch.unique(rows.detach().argmax(1))",
         "out = rows.index_select(1, best).sum(1)"],
    )


def scattered(d):
    a = d.tensor(lambda t: t.dim() == 2 and t.shape[0] == d.samples and t.shape[1] >= 5)
    columns = d.shape(a)[1]
    index, values = f"(tokens % {columns})", f"{a}[:, :5]"
    kind = d.choice("sum", "mean", "amax")
    return d.choice(
        f"{a}.scatter_reduce(1, {index}, torch.tanh({values}), '{kind}')",
        f"{a}.index_fill(1, tokens[0] % {columns}, 0.3)",
        f"torch.put({a}, tokens[:, 0], {a}[:, 1] * 0.5, accumulate=True)",
        f"torch.index_put({a}, [tokens[:, 0] % 2, tokens[:, 1] % {columns}], {a}[:, 0], accumulate=True)",
        f"{a}.take(tokens)",
        f"torch.index_reduce({a}, 1, tokens[0] % {columns}, {values}, 'mean')",
        [f"out = {a} * 1.0", f"out.index_put_([torch.arange({d.samples}), tokens[:, 0] % {columns}], {a}[:, 1])"],
        [f"out = {a} * 1.0", f"out.scatter_add_(1, {index}, torch.sin({values}))"],
        [f"counts = torch.bincount(tokens.flatten(), minlength={d.vocabulary}).float()",
         f"out = {a} * (1.0 + counts[tokens[:, :1]] * 0.1)"],
    )


def compared(d):
    """Losses and distances."""
    a = d.tensor(lambda t: t.dim() == 2 and t.shape[0] == d.samples and 2 <= t.shape[1] <= 64)
    b, columns = d.like(a), d.shape(a)[1]
    return d.choice(
        lambda: f"F.cosine_similarity({a}, {b}, 1)",
        lambda: f"F.pairwise_distance({a}, {b} + 2.0)",
        lambda: f"F.kl_div(torch.log_softmax({a}, 1), torch.softmax({b}, 1), reduction='batchmean')",
        lambda: f"F.huber_loss({a}, {b}, 'none', 0.5)",
        lambda: f"F.binary_cross_entropy_with_logits({a}, torch.sigmoid({b}), "
                f"pos_weight={d.parameter(columns)}.detach().abs())",
        lambda: f"F.binary_cross_entropy(torch.sigmoid({a}), torch.sigmoid({b}).detach(), reduction='none')",
        lambda: f"F.triplet_margin_loss({a}, {b}, torch.sin({a}) + 1.0, 0.5)",
        lambda: f"F.multi_margin_loss({a}, tokens[:, 0] % {columns})",
        lambda: f"F.soft_margin_loss({a}, torch.sign({b}.detach()))",
        lambda: f"F.poisson_nll_loss({a}, {b}.detach().abs())",
        lambda: f"F.cosine_embedding_loss({a}, {b}, torch.ones([{d.samples}]), 0.1)",
        lambda: f"F.ctc_loss(torch.log_softmax({a}, 1).unsqueeze(1).expand([-1, 2, -1]).repeat([4, 1, 1]), "
                f"tokens[:, :2] % ({columns} - 1) + 1, torch.full([2], 8), torch.full([2], 2)) * 0.1",
        lambda: f"F.bilinear({a}, {b}, {d.parameter(3, columns, columns)})",
        lambda: f"{d.submodule(f'torch.nn.Bilinear({columns}, {columns}, 3)')}({a}, {b})",
        lambda: f"torch.tensordot({a}, {b}, [[1], [1]]) * 0.2",
        lambda: f"torch.kron({a}[:, :2], {b}[:, :3])",
        lambda: f"torch.cov({a}) * 0.3",
        lambda: f"torch.cdist({a}, {b} + 1.0)",
        lambda: f"torch.cross({a}[:, :3], {b}[:, :3], 1)" if columns >= 3 else f"torch.vdot({a}[0], {b}[0]) * 0.1",
    )()


def complex_pairs(d):
    a = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 4)
    pairs = f"{a}[..., :4].reshape([-1, 2, 2]).float().contiguous()"
    return d.choice(
        [f"waves = torch.view_as_complex({pairs})", "turn = torch.polar(torch.ones([2]), torch.tensor([0.3, 0.7]))",
         "out = torch.view_as_real(waves * turn).flatten(1)"],
        [f"waves = torch.view_as_complex({pairs})", "out = torch.view_as_real(waves.conj() * waves)[..., 0]"],
        [f"waves = torch.fft.fft2({pairs})", "out = torch.fft.fftshift(waves.abs())"],
        ["window = torch.hann_window(4)", f"waves = torch.stft({a}.float().flatten(), 4, 2, 4, window, "
         "center=False, return_complex=True)", "out = torch.sin(torch.view_as_real(waves))"],
    )


OPS = [decomposed, *[scanned] * 2, selected, scattered, *[compared] * 2, complex_pairs]
