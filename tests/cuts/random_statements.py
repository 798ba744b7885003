"""The statements of random models. Each draw takes the draft (random_models.py) and gives an expression, or lines that
set `out`; what a draft cannot do is left out there, so a draw need not ask for more than makes success likely."""

def has_rows(t):
    return t.dim() >= 1 and max(t.shape) > 3


def wide(t):
    return t.dim() >= 1 and 2 <= t.shape[-1] <= 128


def linear(d):
    a = d.tensor(wide)
    width, size = d.shape(a)[-1], d.size()
    return d.choice(
        lambda: f"F.linear({a}, {d.parameter(size, width)}, {d.parameter(size)})",
        lambda: f"F.linear({a}, {d.old_parameter(size, width)})",
        lambda: f"{a} @ {d.parameter(width, size)}",
        lambda: f"{d.submodule(f'torch.nn.Linear({width}, {size})')}({a})",
        lambda: f"{d.submodule(f'torch.nn.Linear({width}, {size}).requires_grad_(False)')}({a})",
    )()


def twice(d):
    """A submodule that is called twice, far apart or not."""
    a = d.tensor(wide)
    width = d.shape(a)[-1]
    layer = d.submodule(f"torch.nn.Linear({width}, {width})")
    return [f"out = torch.tanh({layer}({a}))", f"out = {layer}(out) + {a}"]


def part(d):
    a = d.tensor(has_rows)
    sizes = d.shape(a)
    i = d.choice(*[i for i, size in enumerate(sizes) if size > 3])
    begin = d.random.randint(0, 2)
    end = d.random.randint(begin + 1, sizes[i])
    step = d.choice(1, 1, 1, 2)
    return d.choice(
        f"{a}[{':, ' * i}{begin}:{end}:{step}]",
        f"{a}.narrow({i}, {begin}, {end - begin})",
        f"{a}.select({i}, {begin})",
        f"{a}.index_select({i}, torch.tensor([2, 0, 2]))",
        f"torch.flip({a}, [{i}])",
        f"torch.roll({a}, 1, {i})",
        f"{a}[..., 1:]",
    )


def turned(d):
    a = d.tensor(lambda t: t.dim() >= 2)
    order = list(range(len(d.shape(a))))
    d.random.shuffle(order)
    return d.choice(
        f"{a}.permute({order})",
        f"{a}.transpose({order[0]}, {order[1]})",
        f"{a}.transpose({order[0]}, {order[1]}).contiguous()",
    )


def joined(d):
    a = d.tensor(lambda t: t.dim() >= 1)
    sizes, i = d.shape(a), d.dim(a)

    def fits(t):
        return t.dim() == len(sizes) and all(t.shape[k] == size for k, size in enumerate(sizes) if k != i)

    names = [a] + [d.other(fits) for _ in range(d.choice(1, 2))]
    d.random.shuffle(names)
    return f"torch.cat([{', '.join(names)}], {i})"


def stacked(d):
    a = d.of_rank(1, 2)
    return f"torch.stack([{a}, {d.like(a)}], {d.dim(a)})"


def collected(d):
    """Values in lists and dicts."""
    a = d.of_rank(1, 2, 3)
    return d.choice(
        [f"held = [{a}]", "for k in range(3):", f"    held.append(torch.tanh({a} * (k + 1)))",
         f"out = torch.cat(held, {d.dim(a)})"],
        [f"held = [{a}, {d.like(a)} * 0.5]", "out = held[0] + held[1]"],
        [f"named = {{'a': {a} * 2.0, 'b': {d.like(a)}}}", "out = torch.sin(named['b']) + named['a']"],
        [f"named = {{'a': {a} * 2.0}}", f"named['b'] = torch.tanh({d.like(a)})", "named['a'] = named['b'] * named['a']",
         "out = torch.sin(named['a']) + named['b'] * len(named)"],
        [f"held = [{a}, {d.like(a)}]", "held[0] = torch.sin(held[1]) * held[0]", f"held.append({a} * 0.5)",
         "held[-1] = torch.tanh(held[2])", f"out = torch.cat(held, {d.dim(a)})"],
        [f"held = [{a}, {d.like(a)} * 0.5, {d.like(a)}]", f"if bool({a}.sum() > 0.1):",
         "    held[0] = torch.sin(held[1])", "    held[-1] = held[2] + 1.0", "else:",
         "    if bool(held[1].sum() > 0.0):", "        held[1] = torch.tanh(held[0])",
         f"out = torch.cat(held, {d.dim(a)})"],
        [f"held = [{a}, {d.like(a)}]", f"if bool({a}.sum() > 0.1):", "    held[1] = held[0] * 0.5",
         "    held[0] = torch.tanh(held[1])", "out = held[0] * 2.0 + held[1]"],
        [f"held = [{a}, {d.like(a)}]", f"for k in range(int({a}.sum() > 0.1)):", "    held[k] = torch.sin(held[1])",
         "out = held[0] * 2.0 + held[1]"],
        [f"held = [{a}, {d.like(a)}]", f"if bool({a}.sum() > 0.1):", "    held = [held[1], torch.tanh(held[0])]",
         "out = held[0] * 2.0 + held[1]"],
        [f"held = [{a} * 1.0, {d.like(a)} * 0.5]", "more = [torch.sin(held[0])]", "held += more",
         "more.append(torch.tanh(held[1]))", "held.extend(more)", "both = held + [held[0] * 0.5]",
         d.choice("both[3].mul_(0.5)", "both[0] = both[1] + both[2]", "torch.sin(both[1])"),
         f"out = torch.cat(both, {d.dim(a)})"],
        [f"pair = ({a}, {d.like(a)} * 2.0)", "left, right = pair", "out = left * torch.tanh(right)"],
        [f"held = [{a} * 1.0]", "for k in range(3):", "    held.append(torch.sin(held[k]) * (k + 1))",
         "out = held[0] * 0.5", "for k in range(3):", "    out = F.relu_(out + held.pop())"],
        [f"held = [{a} * 1.0, {d.like(a)} * 0.5]", "held.insert(0, torch.tanh(held[1]))", "held.reverse()",
         "twice = [torch.sin(one) for one in held[::-1]]", d.choice("held[1].mul_(0.5)", "del twice[0]", "held.pop(0)"),
         "for one in twice[:2]:", "    held.insert(1, one * 0.5)", f"out = torch.cat(held, {d.dim(a)})"],
        [f"held = [{a} * 1.0, {d.like(a)} * 0.5]", "first, second = held[-2:]", "second.mul_(0.5)",
         "inner = [held, [first]]", "inner.reverse()", "inner.pop().append(torch.tanh(second))",
         "out = held[len(held) - 1] * inner[0][0]"],
        [f"named = {{'a': {a} * 2.0, 'b': {d.like(a)}}}", "named['c'] = torch.tanh(named.pop('b'))",
         "out = named['c'] + named.pop('d', named['a'])", "for value in named.values():",
         "    out = out * 0.5 + value"],
        [f"sizes = [size + 1 for size in {a}.shape]", f"out = torch.tanh({a})", "out = out * sizes[0] * 0.5"],
        ["named = {0: 1}", "sizes = [2]", f"for size in {a}.shape:", "    named[size] = size % 3 + 1",
         "    sizes.append(size % 2)", f"chosen = sizes if bool({a}.sum() > 0.1) else None", f"out = torch.tanh({a})",
         d.choice("sizes.append(3)", "named[7] = 2", "out = torch.sin(out)"), "out = out * 0.5 + named[0]",
         "if chosen is not None:", "    out = out * (1.0 + chosen[-1])", "out = out + len(named) + len(sizes)"],
    )


def pieces(d):
    a = d.tensor(has_rows)
    sizes = d.shape(a)
    i = max(range(len(sizes)), key=sizes.__getitem__)
    return d.choice(
        f"torch.chunk({a}, 2, {i})",
        f"torch.split({a}, [{sizes[i] - 2}, 2], {i})",
        f"torch.unbind({a}, {d.dim(a)})[:2]",
        f"torch.tensor_split({a}, 3, {i})",
    )


def gated(d):
    """Written memory in pieces: in YOLO's and ShuffleNet's blocks."""
    a = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 4 and t.shape[-1] % 2 == 0)
    act = d.choice("F.silu({}, inplace=True)", "F.relu({}, inplace=True)", "{}.sigmoid_()", "{}.mul_(0.5)")
    return [f"whole = {act.format(f'({a} * 1.5)')}", "first, second = torch.chunk(whole, 2, -1)",
            f"third = {act.format('(second * first)')}", "out = torch.cat([first, second, third], -1)"]


def pair(d):
    a = d.tensor()
    b = d.broadcast_to(a)
    return d.choice(
        f"{a} + {b}",
        f"{a} * torch.tanh({b})",
        f"torch.lerp({a}, {b}, 0.3)",
        f"{a} - 0.5 * {b}",
        f"torch.where({b} > 0, {a}, {b})",
        f"torch.maximum({a}, {b})",
        f"{a} / (1.5 + torch.sigmoid({b}))",
        f"torch.addcmul({a}, {a}, {b}, value=0.1)",
        f"torch.hypot({a}, {b} + 2.0)",
    )


def pointwise(d):
    a = d.tensor()
    return d.choice(
        lambda: f"torch.tanh({a})",
        lambda: f"F.gelu({a})",
        lambda: f"F.silu({a})",
        lambda: f"F.relu({a})",
        lambda: f"torch.sigmoid({a})",
        lambda: f"F.leaky_relu({a}, 0.1)",
        lambda: f"torch.clamp({a}, -1.0, 1.0) * 1.5",
        lambda: f"F.softplus({a})",
        lambda: f"torch.sin({a})",
        lambda: f"torch.log1p({a} * {a})",
        lambda: f"F.elu({a})",
        lambda: f"{a}.double().exp().clamp(max=9.0).float()",
        lambda: f"{a}.to(torch.bfloat16).float()",
        lambda: f"F.hardswish({a})",
        lambda: f"F.prelu({a}, {d.parameter(1)})",
    )()


def along(d):
    a = d.tensor(lambda t: t.dim() >= 1)
    i, keep = d.dim(a), d.choice(True, False)
    return d.choice(
        f"torch.softmax({a}, {i})",
        f"torch.log_softmax({a}, {i})",
        f"torch.mean({a}, [{i}], {keep})",
        f"torch.sum({a}, [{i}], {keep}) * 0.3",
        f"torch.var({a}, [{i}])",
        f"torch.cumsum({a}, {i}) * 0.3",
        f"torch.logsumexp({a}, [{i}])",
        f"torch.amax({a}, [{i}])",
        f"F.normalize({a}, dim={i})",
        f"torch.sort({a}, dim={i}, stable=True)[0]",
        f"torch.max({a}, dim={i})[0]",
        f"F.glu({a}, {i})",
        f"torch.topk({a}, 2, {i})[0]",
        f"torch.cummax({a}, {i})[0]",
        f"torch.linalg.vector_norm({a} + 2.0, 2.0, [{i}])",
        f"torch.std({a}, [{i}])",
        f"torch.median({a}, dim={i})[0]",
        f"torch.diff({a}, dim={i})",
    )


def whole(d):
    a = d.tensor(lambda t: t.numel() > 1)
    return d.choice(
        f"torch.tanh({a}).norm() * 0.3",
        f"{a}.mean()",
        f"{a}.flatten()",
        f"{a}.reshape([-1])",
        f"{a}.unsqueeze(0)",
        f"{a}.std()",
        f"{a}.max()",
        f"F.mse_loss({a}, {d.like(a)}, reduction='none')",
        f"F.smooth_l1_loss({a}, {d.like(a)})",
        f"{a}.flatten(0, 1)",
    )


def reshaped(d):
    a = d.tensor(lambda t: t.dim() >= 1)
    sizes = d.shape(a)
    rank = len(sizes)
    return d.choice(
        f"{a}.reshape([{sizes[0]}, -1])",
        f"{a}.unsqueeze(0).expand([3{', -1' * rank}])",
        f"F.pad({a}, [1, 2])",
        f"{a}.unsqueeze(-1)",
        f"{a}.repeat([2{', 1' * (rank - 1)}])",
        f"{a}.repeat_interleave(2, {rank - 1})",
        f"{a}.movedim(0, -1)",
        f"{a}.view_as({a})",
        f"{a}.contiguous()",
        f"{a}.clone()",
        f"{a}.unfold({rank - 1}, 3, 2)",
        f"F.pad({a}, [-1, 1])",
        f"torch.tril({a})",
        f"{a}.masked_fill({a} > 0.5, 0.25)",
    )


def product(d):
    kind = d.choice("mv", "mm", "bmm", "dot", "outer", "einsum", "baddbmm", "addmv")
    if kind in ("dot", "outer"):
        a = d.tensor(lambda t: t.dim() == 1 and t.numel() <= 70)
        return f"torch.dot({a}, {d.like(a)}) * 0.1" if kind == "dot" else f"torch.outer({a}, {d.like(a)})"
    if kind in ("mv", "addmv"):
        a = d.of_rank(1)
        width, size = d.shape(a)[0], d.size()
        if kind == "addmv":
            return f"torch.addmv({d.parameter(size)}, {d.parameter(size, width)}, {a})"
        return d.choice(
            lambda: f"torch.mv({d.parameter(size, width)}, {a})",
            lambda: f"torch.mv({d.other(lambda t: t.dim() == 2 and t.shape[1] == width)}, {a}) * 0.3",
        )()
    if kind in ("mm", "einsum"):
        a = d.of_rank(2)
        b = d.other(lambda t: t.dim() == 2 and t.shape[0] == d.shape(a)[1])
        return f"torch.mm({a}, {b}) * 0.2" if kind == "mm" else f"torch.einsum('ij,jk->ik', {a}, {b}) * 0.2"
    a = d.of_rank(3)
    b = d.like(a)
    if kind == "baddbmm":
        return f"torch.baddbmm(torch.zeros([]), {a}, {b}.transpose(1, 2)) * 0.2"
    return d.choice(f"torch.bmm({a}, {b}.transpose(1, 2)) * 0.2", f"{a}.transpose(1, 2).matmul({b}) * 0.2")


def attention(d):
    a = d.of_rank(3, 4)
    causal = d.choice(True, False)
    dropout = d.choice("0.0", "0.2 if self.training else 0.0")
    return f"F.scaled_dot_product_attention({a}, {d.like(a)}, {d.like(a)}, None, {dropout}, {causal})"


def convolution(d):
    a = d.tensor(lambda t: t.dim() in (3, 4) and min(t.shape[2:]) >= 3)
    sizes = d.shape(a)
    n, channels = len(sizes) - 2, sizes[1]
    kernel = [3] * n
    scaling = "linear" if n == 1 else "bilinear"
    return d.choice(
        lambda: f"F.conv{n}d({a}, {d.parameter(5, channels, *kernel)}, {d.parameter(5)}, 1, 1)",
        lambda: f"F.conv{n}d({a}, {d.parameter(channels, 1, *kernel)}, None, {d.choice(1, 2)}, 1, 1, {channels})",
        lambda: f"F.conv_transpose{n}d({a}, {d.parameter(channels, 3, *kernel)}, None, 2)",
        lambda: f"F.max_pool{n}d({a}, 2)",
        lambda: f"F.avg_pool{n}d({a}, 3, 1, 1)",
        lambda: f"F.adaptive_avg_pool{n}d({a}, 2)",
        lambda: f"F.interpolate({a}, scale_factor=2.0)",
        lambda: f"F.interpolate({a}, scale_factor=1.5, mode='{scaling}')",
        lambda: f"F.pad({a}, [1, 1], 'reflect')" if n == 1 else f"F.pixel_shuffle({a}.repeat([1, 4, 1, 1]), 2)",
        lambda: f"F.lp_pool1d({a}.abs() + 0.1, 2, 2)" if n == 1 else f"F.unfold({a}, 3)",
    )()


def norm(d):
    a = d.of_rank(2, 3, 4)
    sizes = d.shape(a)
    batch_norm = f"torch.nn.BatchNorm{'1d' if len(sizes) < 4 else '2d'}({sizes[1]})"
    return d.choice(
        lambda: f"F.layer_norm({a}, [{sizes[-1]}], {d.parameter(sizes[-1])}, {d.parameter(sizes[-1])})",
        lambda: f"{d.submodule(f'torch.nn.LayerNorm({sizes[-1]})')}({a})",
        lambda: f"F.group_norm({a}, 1)",
        lambda: f"{d.submodule(batch_norm)}({a})",
        lambda: f"F.batch_norm({a}, None, None, None, None, True)",
        lambda: f"F.rms_norm({a}, [{sizes[-1]}])",
        lambda: f"F.instance_norm({a})",
        lambda: f"F.local_response_norm({a}, 2)",
    )()


def siamese(d):
    """A submodule with batch statistics that is called for several values, which need not be near each other."""
    a = d.tensor(lambda t: t.dim() == 2 and 2 <= t.shape[-1] <= 128)
    width = d.shape(a)[-1]
    parts = [f"torch.nn.Linear({width}, 9), torch.nn.BatchNorm1d(9)",
             d.choice("torch.nn.ReLU(inplace=True)", "torch.nn.Dropout(0.2)", "torch.nn.GELU()"),
             f"torch.nn.Linear(9, {width}), torch.nn.BatchNorm1d({width})"]
    encoder = d.old_submodule(f"torch.nn.Sequential({', '.join(parts)})")
    return d.choice(
        [f"out = {encoder}({a}) * {encoder}({d.like(a)})"],
        [f"left = {encoder}({a})", f"right = {encoder}(torch.sin({a}) + {d.like(a)})", "out = left + right.detach()"],
        [f"left = {encoder}({a})", "middle = torch.tanh(left)", f"right = {encoder}({d.like(a)} * 0.5)",
         f"out = torch.cat([{encoder}(-{a}), middle, right], -1)"],
        f"{encoder}({a})",
    )


def drawn(d):
    """Random numbers inside the model."""
    a = d.tensor(lambda t: t.dim() >= 1)
    sizes = d.shape(a)
    return d.choice(
        lambda: f"F.dropout({a}, 0.2, self.training)",
        lambda: f"{d.submodule('torch.nn.Dropout(0.3)')}({a})",
        lambda: f"{a} + 0.1 * torch.randn_like({a})",
        lambda: f"{a} * torch.bernoulli(torch.full_like({a}, 0.7))",
        lambda: f"F.rrelu({a}, 0.1, 0.3, self.training)",
        lambda: f"{a} + torch.rand([{sizes[-1]}])",
        lambda: f"F.alpha_dropout({a}, 0.2, self.training)",
        lambda: f"{a}[torch.randperm({sizes[0]})]",
        lambda: f"{a} + 0.01 * torch.empty_like({a}).exponential_()",
        lambda: f"torch.normal({a}, 0.1)",
        lambda: f"{a} * (torch.multinomial(torch.ones([5]), 2) + 1).sum()",
    )()


def recurrent(d):
    a = d.of_rank(3)
    kind, size = d.choice("GRU", "LSTM", "RNN"), d.choice(3, 5)
    extra = d.choice("", ", num_layers=2, dropout=0.2", ", bidirectional=True", ", batch_first=True")
    return f"{d.submodule(f'torch.nn.{kind}({d.shape(a)[2]}, {size}{extra})')}({a})[0]"


def multihead(d):
    a = d.tensor(lambda t: t.dim() == 3 and t.shape[2] <= 64)
    layer = d.submodule(f"torch.nn.MultiheadAttention({d.shape(a)[2]}, 1, dropout={d.choice(0.0, 0.1)})")
    return f"{layer}({a}, {a}, {a}, need_weights={d.choice(True, False)})[0]"


def sequence(d):
    a = d.tensor(wide)
    width, size = d.shape(a)[-1], d.size()
    act = d.choice("ReLU(inplace=True)", "GELU()", "SiLU(inplace=True)")
    body = f"torch.nn.Sequential(torch.nn.Linear({width}, {size}), torch.nn.{act}, torch.nn.Dropout(0.1))"
    return f"{d.submodule(body)}({a})"


def embedded(d):
    size = d.size()
    return d.choice(
        lambda: f"F.embedding(tokens, {d.parameter(d.vocabulary, size)})",
        lambda: f"{d.submodule(f'torch.nn.Embedding({d.vocabulary}, {size}, padding_idx=0)')}(tokens)",
        lambda: f"F.one_hot(tokens, {d.vocabulary}).float()",
        lambda: f"F.embedding_bag(tokens, {d.parameter(d.vocabulary, size)})",
        lambda: f"{d.parameter(d.vocabulary, size)}[tokens]",
        lambda: f"{d.parameter(d.vocabulary, size)}.index_select(0, tokens[0])",
    )()


def indexed(d):
    a = d.tensor(lambda t: t.dim() == 2 and t.shape[0] == d.samples)
    rows, columns = d.shape(a)
    index = f"(tokens[:, :2] % {columns})"
    return d.choice(
        f"{a}.gather(1, {index})",
        f"{a}.scatter_add(1, {index}, {a}.gather(1, {index}))",
        f"torch.zeros([{rows}, {columns}]).scatter(1, {index}, {a}[:, :2])",
        f"{a}.index_add(1, tokens[0] % {columns}, {a}[:, :1].expand([-1, 5]))",
        f"{a}[:, tokens[0] % {columns}]",
        f"torch.take_along_dim({a}, {index}, 1)",
        f"F.cross_entropy({a}, tokens[:, 0] % {columns})",
        f"F.cross_entropy({a}, tokens[:, 0] % {columns}, reduction='none', label_smoothing=0.1)",
        f"F.nll_loss(torch.log_softmax({a}, 1), tokens[:, 0] % {columns})",
    )


def in_place(d):
    a = d.tensor(lambda t: t.dim() >= 1)
    last = d.shape(a)[-1]
    return d.choice(
        [f"out = {a} + 1.0", "out.tanh_()"],
        [f"out = {a} * 1.5", "out[..., 0] = 0.5"],
        [f"out = {a}.clone()", f"out[..., {last // 2}:] *= 2.0"],
        [f"out = {a} * 0.5", f"out += {d.like(a)}"],
        [f"{a}.add_(0.25)", f"out = torch.sin({a})"],
        [f"{a} += {d.like(a)}.mean()", f"out = {a} * 0.5"],
        [f"view = {a}[..., :1]", f"out = {a} * 2.0", "out[..., :1] = view"],
        [f"out = torch.zeros_like({a})", f"out.copy_({a})"],
        [f"out = torch.zeros({d.shape(a)})", f"out[0] = {a}[0]"],
        [f"out = torch.empty_like({a})", "out.fill_(0.5)", f"out = out * {a}"],
        [f"out = ({a} * 1.0).view([-1])", "out[1:].mul_(0.5)"],
        [f"out = ({a} + 0.5).relu_()", "out = out.masked_fill_(out > 1.0, 1.0)"],
        [f"out = torch.tanh({a})", f"other = torch.sin({d.like(a)})", "out.data.mul_(0.5)", "out = out + other"],
    )


def filled(d):
    """A tensor that is written piece by piece, by views that nobody keeps, as recurrences over time do."""
    a = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 3)
    b = d.like(a)
    new = d.choice(f"torch.zeros_like({a})", f"{a} * 0.5", f"torch.zeros_like({a}).transpose(0, -1)"
                   f".contiguous().transpose(0, -1)", f"torch.empty_like({a}).fill_(0.25)")
    steps = d.choice(
        [f"out[..., 0] = torch.tanh({a}[..., 0])", f"state = torch.sin({b}[..., 1]) + out[..., 0]",
         "out[..., 1] = state", f"state = state * 0.5 + {a}[..., 2]", "out[..., 2] = torch.tanh(state)"],
        ["state = out[..., 0] * 1.0", "for k in range(3):", f"    state = torch.tanh(state + {b}[..., k])",
         "    out[..., k] = state"],
        [f"out[..., 1:] += {b}[..., 1:]", f"state = torch.sin(out) * {a}", "out[..., :1] *= 0.5",
         "out = out + state"],
        [f"out[..., 0] = {b}[..., 1]", "state = F.silu(out[..., 1:])", "out[..., 1:] = state * 0.5",
         f"torch.relu_(out[..., 0].add_({a}[..., 2]))"],
    )
    return [f"out = {new}", *steps, *d.choice([], ["out = out * 1.0"], ["out.mul_(0.5)"])]


def counted(d):
    """A buffer that the forward pass writes."""
    a = d.tensor(wide)
    width = d.shape(a)[-1]
    rows = f"{a}.detach().reshape([-1, {width}])"
    kind = d.choice("counter", "mean", "scale")
    if kind == "counter":
        buffer = d.buffer("torch.zeros([])")
        return [f"{buffer}.add_(1.0)", f"out = {a} * (1.0 + 0.1 * {buffer})"]
    buffer = d.buffer(f"torch.ones([{width}])")
    if kind == "mean":
        return [f"out = {a} * 1.0", f"{buffer}.mul_(0.9)", f"{buffer}.add_({rows}.mean(0), alpha=0.1)"]
    return ["with torch.no_grad():", f"    {buffer}.lerp_({rows}.abs().mean(0), 0.1)", f"out = {a} / ({buffer} + 1.0)"]


def remembered(d):
    """State that the forward pass writes with what it sees, and that backward wants as it was."""
    a = d.tensor(wide)
    width = d.shape(a)[-1]
    seen = f"{a}.detach().reshape([-1, {width}]).abs().mean(0)"
    kind = d.choice("buffer", "view", "assigned", "weight")
    if kind == "weight":
        weight = d.parameter(width, width)
        return ["with torch.no_grad():", f"    {weight}.mul_(0.9).add_({seen}, alpha=0.05)",
                f"out = F.linear({a}, {weight}.to({a}.dtype))"]
    if kind == "view":
        buffer = d.buffer(f"torch.ones([2, {width}])")
        return [f"{buffer}.mul_(0.9).add_({seen}, alpha=0.1)", f"row = {buffer}[1]", f"out = {a} / row"]
    buffer = d.buffer(f"torch.ones([{width}])")
    mean = f"0.9 * {buffer} + 0.1 * {seen}"
    if kind == "assigned":
        return [f"before = {a} * {buffer}", f"{buffer} = {mean}", f"out = before + {buffer} * torch.sin({a})"]
    return [f"{buffer}.copy_({mean})", f"out = {a} / {buffer}"]


def without_gradient(d):
    a = d.tensor()
    return d.choice(
        [f"out = {a}.detach() * {d.broadcast_to(a)}"],
        ["with torch.no_grad():", f"    scale = {a}.abs().mean() + 1.0", f"out = {a} / scale"],
        [f"out = {a} + ({a}.round() - {a}).detach()"],
    )


def ranged(d):
    """Several ops with gradients or casts turned on or off."""
    a = d.tensor(lambda t: t.dim() >= 1)
    width = d.shape(a)[-1]
    weight = d.old_parameter(width, width)
    guard = d.choice("torch.no_grad()", "torch.no_grad()", "torch.autocast('cpu', enabled=False)",
                     "torch.autocast('cpu', dtype=torch.bfloat16, cache_enabled=False)")
    inside = d.choice(
        [f"still = F.linear({a}.float(), {weight})", "still = torch.tanh(still)"],
        [f"still = {a} * 0.5", f"still = F.dropout(still, 0.3) + {d.broadcast_to(a)}", "still.mul_(2.0)"],
        [f"view = {a}[..., :1]", "still = torch.sigmoid(view)", f"still = still * {a}"],
        [f"still = {a} * 1.0", f"if bool({a}.sum() > 0):", f"    with {guard}:", "        still = torch.sin(still)"],
        [f"still = {a} * 1.0", f"with {guard}:", f"    still = F.linear(still.float(), {weight})",
         "still = still * 2.0"],
    )
    behind = d.choice(f"out = {a} * still", "out = still * 1.0", f"out = torch.cat([{a}, still.to({a}.dtype)], -1)")
    if d.choice(True, False, False):
        return ["before = torch.is_grad_enabled()", "torch.set_grad_enabled(False)", *inside,
                "torch.set_grad_enabled(before)", behind]
    return [f"with {guard}:", *["    " + line for line in inside], behind]


def sloped(d):
    """A gradient inside of the forward pass, as in a penalty on slopes or in forces of an energy."""
    a = d.tensor(lambda t: t.dim() >= 1)
    height = d.choice("torch.tanh(point)", f"point * torch.sin(point) * {d.broadcast_to(a)}", "linear")
    if height == "linear":
        width = d.shape(a)[-1]
        height = f"torch.sigmoid(F.linear(point, {d.old_parameter(width, width)}.to(point.dtype)))"
    slope = "torch.autograd.grad([height.sum()], [point], create_graph=True)[0]"
    return [f"point = {a} * 1.0", "point.requires_grad_(True)", f"height = {height}", f"slope = {slope}",
            "assert slope is not None", d.choice("out = slope * 1.0", f"out = {a} + slope", "out = height * slope")]


def strided(d):
    """What memory holds around a view."""
    a = d.tensor(lambda t: t.dim() == 2 and t.shape[1] > 2)
    rows, columns = d.shape(a)
    return [f"whole = {a} * 1.0", "view = whole[:, ::2]", f"other = torch.tanh({a})",
            f"out = torch.as_strided(view, [{rows}, {columns - 1}], [{columns}, 1]) * other[:, 1:]"]


def forked(d):
    a = d.tensor()
    return [f"later = torch.jit.fork(F.dropout, {a}, 0.3)", f"other = torch.sin({d.broadcast_to(a)})",
            "out = torch.jit.wait(later) * other"]


def traced(d):
    """A function with tensors that the file has as constants."""
    a = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 2)
    code = d.choice("t[..., [0, 1]]", "t[..., [0, 1]]", "t[..., :2] * torch.tensor([2.0, 0.5])",
                    "torch.cat([t[..., :2], torch.tensor([2.0, 0.5]).expand_as(t[..., :2])], -1)")
    return f"{d.old_submodule(f'torch.jit.trace(lambda t: {code}, torch.ones(3, 2))')}({a})"


def spectral(d):
    """Complex numbers on the way, and a view that is negated when it is read."""
    a = d.tensor(lambda t: t.dim() >= 1)
    width = d.shape(a)[-1]
    return d.choice(
        [f"waves = torch.fft.rfft({a}.float())", "waves = waves * 0.5", f"out = torch.fft.irfft(waves, n={width})"],
        [f"waves = torch.fft.fft({a}.float())", f"out = torch.tanh(waves.real) * {a}"],
        [f"waves = torch.fft.fft({a}.float())", "view = waves.conj().imag", "out = torch.sin(view) + view"],
        [f"waves = torch.complex({a}.float(), {d.like(a)}.float())", "waves = waves * waves", "out = waves.abs()"],
    )


def branched(d):
    """Control flow; most of it goes as the data have it."""
    a = d.tensor(lambda t: t.dim() >= 1)
    copy = f"out = {a} * 1.0"
    return d.choice(
        ["if self.training:", f"    out = torch.tanh({a})", "else:", f"    out = {a} * 2.0"],
        [copy, f"if {a}.shape[0] > 1:", f"    out = {a} * 0.5"],
        [copy, f"if bool({a}.sum() > 0):", "    out = torch.sin(out)"],
        [f"out = {a}", f"if bool({a}.sum() > 0):", "    out = torch.sin(out)"],
        [f"out = {a}.detach()", f"if bool({a}.sum() > 0):", f"    out = torch.sin({a})"],
        [f"if float({a}.mean()) > 0.1:", f"    out = F.gelu({a})", "else:", f"    out = {a} - 0.5"],
        [copy, f"for k in range({a}.shape[-1] % 4):", "    out = torch.tanh(out + k)"],
        [copy, "while bool(out.abs().max() > 0.5):", "    out = out * 0.5"],
        [f"scale = {a}.abs().max().item()", f"out = {a} / (scale + 1.0)"],
        ["count = int(tokens[0, 0])", copy, "for k in range(count):", "    out = torch.sin(out)"],
        [f"out = {a}", "if float(torch.rand([1])) > 0.5:", f"    out = torch.tanh({a}) + {d.like(a)}"],
    )


DRAWS = [
    *[linear] * 4, twice, *[part] * 2, turned, joined, stacked, collected, pieces, gated, *[pair] * 2, pointwise,
    *[along] * 2, whole, reshaped, *[product] * 2, attention, *[convolution] * 2, norm, siamese, drawn, recurrent,
    multihead, sequence, embedded, indexed, *[in_place] * 2, filled, counted, remembered, without_gradient,
    *[ranged] * 2, sloped, strided, traced, spectral, forked, *[branched] * 2,
]  # fmt: skip
