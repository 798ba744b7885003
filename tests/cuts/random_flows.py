"""More statements of random models: values that live on for a while (behind LATER, which lies a few statements further
down), containers that change, state, writes by way of views, control flow that ends early. As random_statements.py."""

from random_statements import has_rows, wide

LATER = "# later"


def kept_list(d):
    """A list that changes here and again further down."""
    a, held = d.of_rank(1, 2, 3), d.local()
    b = d.like(a)
    first = d.choice(
        [],
        [f"{held}.append(torch.tanh({a}))"],
        [f"if bool({a}.sum() > 0.1):", f"    {held}.append(torch.sin({a}))"],
        [f"for k in range(int(tokens[0, 0]) % 3):", f"    {held}.append({a} * k)"],
        [f"{held}.extend([torch.sin({b}), {a}])"],
        [f"{held}.insert(1, {b})"],
        [f"{held}[0].mul_(0.5)"],
    )
    then = d.choice(
        [f"{held}[0] = {held}[-1] * 0.5"],
        [f"{held}.append({a})", f"{held}.reverse()"],
        [f"one = {held}.pop()", f"one.add_(0.25)", f"{held}.append(one)"],
        [f"for one in {held}:", "    one.mul_(0.5)"],
        [f"{held}[0].add_({held}[1])", f"{held}.insert(0, torch.sin({held}[1]))"],
        [f"other = {held}", f"other.append({b} * 0.5)"],
        [f"other = {held}.copy()", f"{held}.clear()", f"{held}.append({a})", f"{held}.extend(other)"],
        [f"{held} = [torch.tanh(one) for one in {held}]", f"{held} += {held}[:1]"],
        [f"while len({held}) > 1 and bool({held}[-1].mean() > 0.0):", f"    {held}.pop()"],
        [f"del {held}[0]", f"{held}.append({b})"],
        [f"{held}[0], {held}[1] = {held}[1], {held}[0]", f"{held}[1].mul_(0.5)"],
    )
    start = d.choice(f"{a} * 1.0", f"{a}")
    whole = d.choice([f"out = torch.cat({held}, {d.dim(a)}).mean() + {a}"], added_up(held))
    return [f"{held} = [{start}, {b} * 0.5]", *first, *d.choice([], [LATER]), *then, *d.choice([], [LATER]), *whole]


def chosen(d):
    """Elements, and parts of a list or dict, that the data choose."""
    a, held, k = d.of_rank(1, 2, 3), d.local(), d.local()
    b, place = d.like(a), "int(tokens[0, 0]) % 3"
    start = [f"{held} = [{a}, {b} * 0.5, torch.sin({a})]"]
    return d.choice(
        [*start, f"{k} = {held}[{place}]", LATER, f"out = {k} + {held}[1]"],
        [*start, f"{k} = {held}[:{place} + 1]", LATER, *added_up(k)],
        [*start, f"{k} = {held}.pop({place})", LATER, f"{k}.mul_(0.5)", *added_up(held)],
        [*start, f"{held}.insert({place}, {b})", f"{k} = {held}.copy()", LATER, *added_up(k)],
        [*start, f"{held}[{place}] = {b}", f"{k} = {held}[0]", LATER, f"out = {k} * {held}[2]"],
        [f"{k} = [{a}, {b} * 0.5] * ({place} + 1)", LATER, *added_up(k)],
        [f"{k} = [{d.parameter(1)}, {d.old_parameter(1)}][{place} % 2]", LATER, f"out = {a} * {k}"],
        [f"{held} = {{'a': {a}, 'b': {b} * 0.5}}", f"{k} = {held}['a' if bool({a}.sum() > 0.1) else 'b']", LATER,
         f"out = {k} + {held}['a']"],
        [f"{held} = {{'a': {a} * 1.0}}", f"if bool({a}.sum() > 0.1):", f"    {held}['b'] = {b} * 0.5",
         f"{k} = {d.choice(f'list({held}.values())', f'[one for _, one in {held}.items()]')}", LATER, *added_up(k)],
        [f"{held} = [({a}, {b}), (torch.sin({b}), {a})]", f"{k} = {held}[{place} % 2]", LATER,
         f"out = {k}[0] * 0.5 + {k}[1]"],
        [f"{held} = {a}.unbind(0)", f"{k} = {held}[{place} % len({held})]", LATER, f"out = {k} + {held}[0]"],
    )


def added_up(held):
    return [f"out = {held}[0] * 0.5", f"for one in {held}:", "    out = out + one"]


def kept_dict(d):
    """A dict that changes here and again further down."""
    a, named = d.of_rank(1, 2, 3), d.local()
    b = d.like(a)
    first = d.choice(
        [f"{named}['b'] = torch.tanh({b})"],
        [f"if bool({a}.sum() > 0.1):", f"    {named}['a'] = torch.sin({a})"],
        [f"for key in ['a', 'b']:", f"    {named}[key] = torch.sin({b}) * len({named})"],
        [f"{named}['a'].mul_(0.5)"],
        [f"{named}.update({{'a': {b} * 0.5, 'c': {a}}})"],
    )
    then = d.choice(
        [f"{named}['a'] = {named}['a'] + {b}"],
        [f"{named}['d'] = {named}.pop('a')", f"{named}['a'] = torch.sin({named}['d'])"],
        [f"{named}.setdefault('a', {b}).add_(0.25)"],
        [f"for key, value in {named}.items():", f"    {named}[key] = value * 0.5"],
        [f"{named}['a'].add_({b}.detach())"],
        [f"if 'b' in {named}:", f"    {named}['a'] = {named}['b'] * 0.5"],
        [f"{named}.clear()", f"{named}['a'] = {b} * 0.5"],
        [f"del {named}['a']", f"{named}['a'] = torch.tanh({a})"],
        [f"{named}['a'], {named}['e'] = {b} * 1.0, {named}['a']", f"{named}['e'].mul_(0.5)"],
    )
    return [f"{named} = {{'a': {a} * 1.0}}", *first, *d.choice([], [LATER]), *then, *d.choice([], [LATER]),
            f"out = {named}['a'] * 0.5", f"for value in {named}.values():", "    out = out + value"]


def nested(d):
    """Containers in containers, with values under several names."""
    a = d.of_rank(1, 2, 3)
    b, k = d.like(a), d.local()
    return d.choice(
        [f"{k} = {{'x': [{a} * 1.0], 'y': [{b} * 0.5]}}", f"{k}['x'].append({k}['y'][0])", LATER,
         f"{k}['x'][1].mul_(0.5)", f"out = torch.cat({k}['x'] + {k}['y'], {d.dim(a)})"],
        [f"{k} = [({a} * 1.0, 1), ({b} * 0.5, 2)]", f"{k}.append((torch.sin({k}[0][0]), 3))", LATER,
         f"out = {b} * 1.0", f"for one, count in {k}:", "    out = out + one * count"],
        [f"{k} = ({a} * 1.0, [{b} * 0.5, {a}])", f"{k}[1].append({k}[0])", LATER, f"{k}[0].add_(0.25)",
         f"out = torch.cat({k}[1], {d.dim(a)})"],
        [f"{k} = torch.sort({a}, dim={d.dim(a)}, stable=True)", LATER, f"out = {k}[0] + {k}[1] * 0.1"],
        [f"{k} = [[{a} * 1.0], [{b} * 0.5]]", f"for row in {k}:", "    row.append(torch.tanh(row[0]))",
         f"    row[0].mul_(0.5)", LATER, f"out = {k}[0][1] + {k}[1][0]"],
        [f"{k} = [{a} * 1.0, {b} * 0.5]", f"other = ({k}, {k}[0])", f"other[0][0] = torch.sin(other[1])", LATER,
         "other[1].mul_(0.5)", f"out = {k}[0] + other[1]"],
    )


def made_inside(d):
    """A container that a branch or a loop makes, changes and uses, or gives on."""
    a, found, held = d.of_rank(1, 2, 3), d.local(), d.local()
    b = d.like(a)
    when = d.choice(f"if bool({a}.sum() > 0.1):", "for k in range(int(tokens[0, 0]) % 3):")
    inner = [f"    {line}" for line in d.choice(kept_list, kept_dict, nested)(d) if line != LATER]
    return d.choice(
        [f"{found} = {a}.mean()", when, *inner, f"    {found} = {found} * 0.5 + out.mean()",
         f"out = {a} + {found}"],
        [f"{found} = {a}.mean()", f"if bool({b}.sum() > 0.0):", *inner, f"    {found} = out.sum()", "else:",
         f"    {held} = [{a} * 1.0]", f"    {held}.append({b})", f"    {held}[0].mul_(0.5)",
         f"    {found} = {found} + {held}[0].sum() + {held}.pop().mean()", LATER, f"out = {a} * {found}"],
        [f"if bool({a}.sum() > 0.1):", f"    {held} = [{a}]", f"    {held}.append({b} * 0.5)", "else:",
         f"    {held} = [{b}, {a}]", f"    {held}[1] = torch.sin({held}[0])", *d.choice([], [LATER]),
         *d.choice([], [f"{held}.append(torch.tanh({b}))"], [f"{held}[1].mul_(0.5)"]), *added_up(held)],
    )


def kept_views(d):
    """Views and what they are views of, written and read further down."""
    a = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 4)
    k, v = d.local(), d.local()
    view = d.choice(f"{k}[..., 1:]", f"{k}[..., :2]", f"{k}.select(-1, 1)", f"{k}.unsqueeze(0)", f"{k}.view_as({k})",
                    f"{k}.transpose(0, -1)", f"{k}.flatten()", f"{k}.narrow(-1, 1, 2)", f"{k}.unfold(-1, 2, 2)",
                    f"{k}.view([-1])", f"{k}.expand_as({k})", f"{k}.detach()", f"{k}.contiguous()", f"{k}.float()",
                    f"{k}.split(2, -1)[1]", f"{k}.chunk(2, -1)[0]", f"{k}.unbind(0)[0]")
    write = d.choice(f"{k}.mul_(0.5)", f"{v}.mul_(0.5)", f"{v}.add_(1.0)", f"{k}[..., 0] = 0.25",
                     f"{k}.copy_({a} * 0.5)", f"{v} *= {v}.detach()", f"torch.relu_({v})", f"{k}[..., 1:2].zero_()")
    if d.choice(True, False, False):
        write = f"if bool({a}.sum() > 0.1): {write}"
    read = d.choice(f"out = {v} * 1.0", f"out = {k} * 1.0", f"out = torch.tanh({v}.sum() + {k})", f"out = {v}",
                    f"out = {k} - {v}.mean()")
    return [f"{k} = {a} * 1.0", f"{v} = {view}", *d.choice([], [LATER]), write, *d.choice([], [LATER]),
            *d.choice([], [f"{k}.add_(0.1)"]), read]


def kept_numbers(d):
    """Numbers, words and sizes that are used further down."""
    a, k = d.tensor(lambda t: t.dim() >= 1), d.local()
    width = d.shape(a)[-1]
    return d.choice(
        [f"{k} = int(({a} > 0).sum())", LATER, f"out = {a} * (1.0 + {k} % 3)"],
        [f"{k} = float({a}.detach().mean())", LATER, f"out = torch.tanh({a} + {k})", f"out = out * abs({k})"],
        [f"{k} = bool({a}.sum() > 0.1)", LATER, f"out = torch.sin({a}) if {k} else {a} * 0.5"],
        [f"{k} = {a}.shape", LATER, f"out = torch.tanh({a}.reshape([-1])).reshape({k})"],
        [f"{k} = {a}.sum().item()", LATER, f"out = {a} * 0.5", f"if {k} > 0.1:", f"    out = out + {k} * 0.01"],
        [f"{k} = 'high' if bool({a}.sum() > 0.1) else 'low'", LATER, f"out = {a} * 0.5", f"if {k} == 'high':",
         "    out = torch.sin(out)"],
        [f"{k} = [int(tokens[0, i]) for i in range(3)]", f"{k}.sort()", LATER,
         f"out = {a} * (1.0 + {k}[1] * 0.1) + sum({k})"],
        [f"{k} = ({a}.dim(), {a}.shape[-1] // 2)", LATER, f"out = {a}[..., {k}[1]:] * {k}[0]"],
        [f"{k} = {a}.detach().reshape([-1, {width}]).argmax(-1)", f"count = int({k}.max()) + 1", LATER,
         f"out = {a}[..., :{width}] * ({k}.sum() * 0.1)"],
        [f"{k} = max(int(({a} > 0.0).sum()), 1)", f"part = {a}.flatten()[:{k}]", LATER, f"out = part.mean() * {k}"],
    )


def kept_forms(d):
    """Tensors of other types and forms, some of them empty, that are used further down."""
    a, k = d.tensor(lambda t: t.dim() >= 1), d.local()
    last = d.shape(a)[-1]
    return d.choice(
        [f"{k} = {a} > 0.1", LATER, f"out = torch.where({k}, {a}, 0.5) * {k}.float().mean()"],
        [f"{k} = {a} > 0.1", f"{k}.logical_not_()", LATER, f"{k} &= {a} < 1.0", f"out = {a}.masked_fill({k}, 0.25)"],
        [f"{k} = {a}.argsort(-1)", LATER, f"out = {a}.gather(-1, {k})"],
        [f"{k} = {a}.double()", LATER, f"out = ({k} * {a}.sum()).float() * 0.1"],
        [f"{k} = {a}.half()", LATER, f"out = torch.tanh({k}.float()) + {k}"],
        [f"{k} = {a}.to(torch.bfloat16)", LATER, f"{k}.mul_(0.5)", f"out = {k}.float() * {a}"],
        [f"{k} = {a}[..., :0]", LATER, f"out = torch.cat([{k}, {a}, {k} * 2.0], -1) + {k}.sum()"],
        [f"{k} = {a}[..., :0].clone()", f"{k}.mul_(2.0)", LATER, f"out = {a} + torch.cat([{k}, {a}], -1)"],
        [f"{k} = {a}.detach()[..., :{last}].round().long().clamp(-3, 3)", LATER, f"{k} += 1", f"out = {a} * {k}"],
        [f"{k} = {a}.sum()", LATER, f"out = {a} * torch.tanh({k})"],
        [f"{k} = {a}.detach().sum()", f"{k}.requires_grad_(True)", LATER, f"out = {a} * torch.tanh({k})"],
        [f"{k} = {a}.flatten()[{a}.flatten() > 0.0]", LATER, f"out = torch.tanh({k}).sum() + {a}"],
        [f"{k} = torch.nonzero({a} > 0.5)", LATER, f"out = {a} + {k}.shape[0] * 0.1"],
        [f"{k} = {a}.detach()", LATER, f"out = {a} - {k} * 0.5"],
        [f"{k} = torch.polar(torch.ones_like({a}).float(), {a}.float())", LATER,
         f"out = torch.view_as_real({k}).sum(-1)"],
        [f"{k} = {a}.sign().to(torch.int8)", LATER, f"out = {a} * {k}"],
        [f"{k} = torch.zeros_like({a})", LATER, f"{k} += {a}", f"out = {k} * 0.5"],
    )


def optional(d):
    """What may be None."""
    a, k = d.tensor(), d.local()
    b = d.broadcast_to(a)
    return [f"{k}: Optional[torch.Tensor] = None", f"if {d.choice('self.training', f'bool({a}.sum() > 0.1)')}:",
            f"    {k} = torch.tanh({b})", *d.choice([], [LATER]), f"out = {a} * 0.5", f"if {k} is not None:",
            *d.choice([f"    out = out + {k}"], [f"    {k}.mul_(0.5)", f"    out = out * {k}"])]


def ended_early(d):
    """Loops that end when the data say so, in each other."""
    a = d.tensor(lambda t: t.dim() >= 1)
    start = d.choice(f"out = {a} * 1.0", f"out = {a}")
    return [start, *d.choice(
        ["for k in range(4):", "    out = torch.tanh(out)", "    if bool(out.mean() > 0.05):", "        break"],
        ["for k in range(4):", "    if bool(out.sum() > k):", "        continue", f"    out = out * 0.5 + {a}"],
        ["for k in range(2):", "    for n in range(int(tokens[k, 0]) % 3):", "        out = torch.sin(out + n)",
         "        if bool(out.max() > 0.9):", "            break"],
        ["count = 0", "while count < 5 and bool(out.abs().mean() > 0.2):", "    out = out * 0.7", "    count += 1",
         "out = out * (1.0 + count)"],
        ["seen = torch.zeros([])", "for k in range(3):", "    out = F.dropout(out, 0.2)",
         "    if bool(out.sum() > 0.0):", "        out = out + 0.1 * torch.randn_like(out)", "        seen += 1.0",
         "out = out * (1.0 + seen)"],
        [f"for row in {a}.unbind(0):", "    out = out * torch.tanh(row.mean())"],
        ["for k in range(3):", "    out[..., 0] = torch.tanh(out[..., 0]).detach()", "    if bool(out.mean() > 0.0):",
         "        out = out.clone()"],
        ["last = out", "for k in range(3):", "    last, out = out, torch.sin(out) + last * 0.5"],
        ["k = 3", "while k > 0:", "    k -= 1", "    if k == 1:", "        out = torch.tanh(out)", "    else:",
         "        out = out * 0.5"],
    )]


def carried(d):
    """Loops that may run or not, and give on what they are given, in another place too."""
    a, other, held = d.tensor(lambda t: t.dim() >= 1), d.local(), d.local()
    b = d.like(a)
    start = d.choice([f"out = {a}", f"{other} = {b}"], [f"out = {a}.detach()", f"{other} = {b}.detach()"],
                     [f"out = {a} * 1.0", f"{other} = out"], [f"{other} = {a} * 1.0", f"out = {other}[..., :]"])
    loop = d.choice(
        ["    out = torch.sin(out)"],
        [f"    out, {other} = {other}, out"],
        [f"    out, {other} = {other}, torch.sin(out)"],
        [f"    {held} = (torch.sin({held}[0]), {held}[0])"],
        [f"    {held} = (torch.sin({held}[1]), torch.tanh({held}[0]))"],
        ["    if bool(out.mean() > 0.0):", f"        {other} = out * 0.5"],
        [f"    {other} = out[..., :]", "    out = out + k"],
    )
    write = d.choice("out.mul_(0.5)", f"{other}.mul_(0.5)", f"{held}[0].mul_(0.5)", "out = torch.tanh(out)")
    return [*start, f"{held} = (out, {other})", "for k in range(int(tokens[0, 0]) % 3):", *loop,
            *d.choice([], [LATER]), write, *d.choice([], [LATER]),
            f"out = out * out + {other} * torch.sin({other}) + {held}[0] * {held}[1] * out"]


def drawn_in_branches(d):
    """Random numbers that only some microbatches draw, or many of them."""
    a = d.tensor(lambda t: t.dim() >= 1)
    copy = f"out = {a} * 1.0"
    return d.choice(
        [copy, f"if bool({a}.sum() > 0.1):", "    out.add_(torch.empty_like(out).normal_(), alpha=0.1)"],
        [copy, "for k in range(int(tokens[0, 0]) % 4):", "    out = F.dropout(out, 0.3)"],
        [copy, f"rows = torch.multinomial(torch.softmax({a}.detach().flatten(), 0), 2)",
         "out = out * (1.0 + out.flatten()[rows].sum())"],
        [copy, "if self.training:", "    keep = torch.empty_like(out[..., :1]).bernoulli_(0.8)", "    out.mul_(keep)"],
        [f"hard = F.gumbel_softmax({a}, 1.0, {d.choice(True, False)})", f"out = {a} * hard"],
        [f"mixed = torch.rand([{d.shape(a)[0]}] + [1] * {len(d.shape(a)) - 1})", f"out = {a} * mixed",
         "if bool(mixed.mean() > 0.5):", "    out = out + torch.rand_like(out)"],
        [f"out = F.dropout({a} * 1.0, 0.2, self.training, inplace=True)"],
        [copy, "while float(torch.rand([])) > 0.5:", "    out = out * torch.rand([])"],
        [f"start = torch.randint(0, {d.shape(a)[-1]}, [1])", f"out = {a}[..., int(start):]",
         f"out = out.mean(-1, keepdim=True) * {a}"],
        [copy, "noise = torch.zeros_like(out)", "for k in range(2):", "    noise[..., k:].uniform_(-0.1, 0.1)",
         "out = out + noise"],
        [f"{d.choice('x.uniform_', 'torch.empty_like(x).uniform_')}(-1.0, 1.0)", f"out = {a} * x.mean()"],
    )


def set_parts(d):
    """Writes into parts of a tensor."""
    a = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 3)
    sizes = d.shape(a)
    last = sizes[-1]
    index = f"(tokens[0, :3] % {last})"
    return [d.choice(f"out = {a} * 1.0", f"out = {a}.clone()", f"out = torch.zeros_like({a})"), *d.choice(
        [f"out[..., 1] = {a}[..., 0]"],
        ["out[out > 0.1] = 0.5"],
        [f"mask = {a} > 0.1", f"out[mask] = torch.sin({a}[mask])"],
        [f"out.index_fill_(-1, {index}, 0.25)"],
        ["out[..., 1:] = out[..., :-1].clone()"],
        [f"out.masked_fill_({a} > 0.5, 0.25)"],
        [f"out.scatter_add_(-1, {a}.argsort(-1), {a})"],
        [f"out.index_add_({len(sizes) - 1}, {index}, {a}[..., :3])"],
        [f"out.index_copy_({len(sizes) - 1}, torch.tensor([0, 2]), {a}[..., 1:3])"],
        [f"out.index_put_([tokens[0, :2] % {sizes[0]}], {a}[:1], True)"],
        ["out.transpose(0, -1).mul_(0.5)", "out.select(-1, 0).add_(0.25)"],
        [f"out.masked_scatter_({a} > 0.0, {a} * 0.5)"],
        ["out.unsqueeze_(0)", "out.mul_(0.5)", "out.squeeze_(0)"],
        ["out.transpose_(0, -1)", "out[..., 0] = 0.5"],
        ["for k in range(3):", "    out[..., k] *= out[..., (k + 1) % 3].detach() + 0.5"],
        ["part = out[..., :2]", "part += 1.0", "part[..., 0].mul_(0.5)", "out = torch.tanh(out)"],
        [f"out[0], out[-1] = {a}[-1], {a}[0]"],
        ["with torch.no_grad():", "    out[..., 0].fill_(0.5)"],
        ["out.detach().mul_(0.5)"],
        [f"out.clamp_(-1.0, 1.0)", f"out.addcmul_({a}, {a}.detach(), value=0.1)"],
        ["out.sub_(out.mean())", "out.div_(out.detach().abs().max() + 1.0)"],
        [f"out.lerp_({a}, 0.25)", "out.neg_()"],
        ["out.requires_grad_(True)", "out = out * 0.5"],
        ["still = out.detach()", "still.add_(0.1)", "out = out + still"],
    )]


def given_on(d):
    """Modules and ops that give what they are given, or not; then a write."""
    a = d.tensor(lambda t: t.dim() >= 1)
    k = d.local()
    same = d.choice(f"{d.old_submodule('torch.nn.Identity()')}({k})",
                    f"{d.old_submodule('torch.nn.Dropout(0.0)')}({k})",
                    f"{k}.to(torch.float32)", f"{k}.contiguous()", f"{k}.type_as({a})", f"{k}.expand_as({a})",
                    f"F.dropout({k}, 0.2, False)", f"{k}.reshape({k}.shape)", f"torch.flatten({k}, 0, 0)",
                    f"({k} if bool({a}.sum() > 0.1) else {k} * 0.5)", f"F.pad({k}, [0, 0])", f"{k}.squeeze(0)",
                    f"torch.atleast_1d({k})", f"F.relu({k}, inplace=True)", f"torch.cat([{k}], 0)", f"{k}.float()",
                    f"torch.broadcast_tensors({k}, {a})[0]", f"{k}.sum_to_size({k}.shape)")
    write = d.choice(f"{k}.mul_(0.5)", "out.mul_(0.5)", "out[..., 0] = 0.5", f"{k}.add_(out.detach())")
    return [f"{k} = {a} * 1.0", f"out = {same}", *d.choice([], [LATER]),
            *d.choice([write], [f"if bool({a}.sum() > 0.0):", f"    {write}"], []), f"out = out + {k}.mean()"]


def tied(d):
    """One parameter in several forms."""
    a = d.tensor(wide)
    width = d.shape(a)[-1]
    w, k = d.old_parameter(width, width), d.local()
    return d.choice(
        [f"out = torch.tanh(F.linear({a}, {w}))", LATER, f"out = out @ {w}"],
        [f"{k} = {w}.t()", f"out = {a} @ {k}", LATER, f"out = torch.sin(out) @ {k}.contiguous()"],
        [f"out = {a} * {w}[0]", LATER, f"out = out + {w}[1:].mean(0)"],
        [f"{k} = {w} / {w}.norm()", f"out = F.linear({a}, {k})", LATER, f"out = F.linear(torch.tanh(out), {k}.t())"],
        [f"{k}, other = {w}[:1], {w}[1:]", f"out = {a} * {k}[0]", LATER, "out = out + other.sum(0) * 0.1"],
        [f"with torch.no_grad():", f"    {w}.clamp_(-0.2, 0.2)", f"out = F.linear({a}, {w})"],
        [f"with torch.no_grad():", f"    {w}[0].zero_()", f"out = F.linear({a}, {w})", LATER,
         f"out = torch.tanh(out) * {w}.diagonal()"],
        [f"{k} = {w}.view([-1])", f"out = {a} * {k}[:{width}]", LATER, f"out = out + {k}[-{width}:].detach()"],
        [f"out = F.linear({a}.double(), {w}.double()).float()", LATER, f"out = out + F.linear({a}, {w})"],
        [f"{k} = {w}.expand([2, {width}, {width}])", LATER, f"out = {a} + {k}.sum([0, 1]) * 0.1"],
    )


def stateful(d):
    """Layers of random_layers.py, some called twice."""
    a = d.tensor(lambda t: t.dim() >= 2 and 2 <= t.shape[-1] <= 64)
    width = d.shape(a)[-1]
    make = d.choice(d.submodule, d.submodule, d.submodule, d.old_submodule)
    layer = make("layers." + d.choice(
        f"Split({width}, {d.choice(True, False)})", f"Routed({width}, 3)", f"Masked({width})", f"Codebook({width})",
        f"Queue({width})", f"Spectral({width})", f"Started({width})", f"Scanned({width}, {d.choice(True, False)})",
        f"Chain({width}, {d.choice(True, False)})", f"Pyramid({width})", f"Cached({width})", f"Counted({width})"))
    once = [f"out = {layer}({a})"]
    return d.choice(once, once, once, [f"out = torch.tanh({layer}({a}))", f"out = {layer}(out) + {a}"],
                    [f"out = torch.tanh({layer}({a}))", LATER, f"out = {layer}(out) + {a}"])


def goes_on(d):
    """A recurrent layer that begins where it ended."""
    a = d.of_rank(3)
    width, k = d.shape(a)[2], d.local()
    if d.choice(True, False):
        layer = d.old_submodule(f"layers.Pair('{d.choice('LSTM', 'two')}', {width})")
        return f"list({layer}({a}))"
    gru = d.old_submodule(f"torch.nn.GRU({width}, {width})")
    return [f"out, {k} = {gru}({a})", LATER, f"out = {gru}(torch.tanh(out), {k} * 0.5)[0]"]


def kept_state(d):
    """Buffers that are written here and read, or written again, further down."""
    a = d.tensor(wide)
    width = d.shape(a)[-1]
    seen, k = f"{a}.detach().reshape([-1, {width}]).mean(0)", d.local()
    whole = d.buffer(f"torch.zeros([3, {width}])")
    return d.choice(
        [f"{whole}[1] = {seen}", f"out = {a} + {whole}[1]", LATER, f"{whole}[2].add_({seen})",
         f"out = out * (1.0 + {whole}.mean())"],
        [f"{k} = {whole}[0]", f"{k}.lerp_({seen}, 0.1)", LATER, f"out = {a} + {whole}.sum(0)"],
        [f"if bool({a}.sum() > 0.1):", f"    {whole}[0] += {seen}", f"out = {a} + {whole}[0]"],
        [f"for k in range(3):", f"    {whole}[k].add_({seen}, alpha=0.1 * k)", LATER,
         f"out = {a} * (1.0 + {whole}[2])"],
        [f"out = {a} + {whole}[0]", LATER, f"{whole} = torch.cat([{whole}[1:], {seen}.unsqueeze(0)])",
         f"out = out + {whole}[0]"],
        [f"{k} = {whole}.clone()", f"{whole}.add_(1.0)", f"out = {a} + {k}[0]", LATER, f"out = out * {whole}[1]"],
        [f"out = {a} + {whole}[0].detach()", LATER, "with torch.no_grad():", f"    {whole}.copy_({whole}.roll(1, 0))",
         f"    {whole}[0] = {seen}"],
        [f"first, second, third = {whole}.unbind(0)", f"first.add_({seen})", LATER, "second.copy_(first)",
         f"out = {a} + second"],
        [f"{k} = [{whole}[0], {whole}[1]]", f"for one in {k}:", f"    one.add_({seen})", LATER,
         f"out = {a} + {k}[1]"],
    )


def looked_up(d):
    """Embeddings of the rarer kinds."""
    size = d.size()
    table = f"torch.nn.Embedding({d.vocabulary}, {size}, {d.choice('max_norm=0.5', 'scale_grad_by_freq=True')})"
    bag = f"torch.nn.EmbeddingBag({d.vocabulary}, {size}, mode='{d.choice('sum', 'mean', 'max')}')"
    return d.choice(
        lambda: [f"out = {d.old_submodule(table)}(tokens)"],
        lambda: [f"out = {d.old_submodule(bag)}(tokens)"],
        lambda: [f"out = {d.old_submodule(bag)}(tokens.flatten(), torch.tensor([0, 3]))"],
        lambda: ["tokens[:, 0] = tokens[:, 1]", f"out = {d.parameter(d.vocabulary, size)}[tokens]"],
        lambda: [f"tokens.add_(1).remainder_({d.vocabulary})", f"out = {d.old_submodule(bag)}(tokens)"],
        lambda: [f"lookup = {d.parameter(d.vocabulary, size)}", "out = lookup[tokens[:, 0]]", LATER,
                 "out = out @ lookup.t()"],
    )()


def traced_layers(d):
    """Submodules that were traced: their numbers are tensors, their dropout is fixed."""
    a = d.tensor(lambda t: t.dim() == 2 and 2 <= t.shape[-1] <= 64)
    width = d.shape(a)[-1]
    body = d.choice(
        f"torch.nn.Sequential(torch.nn.Linear({width}, {width}), torch.nn.ReLU(inplace=True))",
        f"torch.nn.Sequential(torch.nn.Linear({width}, {width}), torch.nn.BatchNorm1d({width}), torch.nn.Dropout(0.2))",
        f"torch.nn.LayerNorm({width})",
    )
    layer = d.old_submodule(f"torch.jit.trace({body}, torch.randn(4, {width}), check_trace=False)")
    return d.choice([f"out = {layer}({a})"], [f"out = {layer}({a})", LATER, f"out = {layer}(torch.sin(out)) + {a}"])


def overwritten(d):
    """Values of which one name is used again."""
    a, k = d.tensor(lambda t: t.dim() >= 1), d.local()
    return d.choice(
        [f"{k} = {a} + 1.0", f"out = {k} * 2.0", LATER, f"{k} += out", f"out = out + {k}"],
        [f"{k} = {a} * 2.0", f"old = {k}", f"{k} = {k} + 1.0", LATER, f"{k}.mul_(0.5)", f"out = old + {k}"],
        [f"{k} = {a} + 0.5", f"old = {k}", f"{k}.add_(1.0)", LATER, f"out = old * {k}"],
        [f"{k} = {a} * 1.0", f"x = x * (1.0 + {k}.mean())", LATER, f"out = {k} + x.mean()"],
        [f"{k} = {a}.detach()", f"out = {a} * 2.0", LATER, f"{k} = {k} * 0.5", f"out = out + {k}"],
        [f"{k} = {a}.clone().detach_()", LATER, f"{k}.mul_(0.5)", f"out = {a} + {k}"],
        [f"{k} = {a} * 1.0", LATER, f"{k}.detach_()", f"out = {a} + {k}"],
        [f"{k} = torch.empty_like({a})", f"{k}.copy_({a})", LATER, f"{k}.mul_(0.5)", f"out = {k} * 1.0"],
    )


def checked(d):
    """Code that looks at the data and says no."""
    a = d.tensor(lambda t: t.dim() >= 1)
    return d.choice(
        [f"assert bool({a}.isfinite().all()), 'not finite'", f"out = torch.tanh({a})"],
        [f"if bool({a}.isnan().any()):", "    raise ValueError('not a number')", f"out = torch.sin({a})"],
        [f"if {a}.dim() > 4:", f"    out = {a}.flatten()", "else:", f"    out = torch.tanh({a})"],
    )


def several(d):
    """Pieces that are made, changed and put together again."""
    a = d.tensor(has_rows)
    i = max(range(len(d.shape(a))), key=d.shape(a).__getitem__)
    k = d.local()
    return [f"{k} = {d.choice(f'torch.chunk({a}, 2, {i})', f'torch.split({a}, 2, {i})', f'{a}.unbind({i})')}",
            *d.choice([], [LATER]), *d.choice(
        [f"out = torch.cat([torch.tanh({k}[0]), {k}[1] * 0.5], -1)"],
        [f"out = {k}[0].sum() + {k}[-1]"],
        [f"parts = [torch.sin(one) for one in {k}]", "parts[0].mul_(0.5)", "out = torch.cat(parts, -1)"],
        [f"out = {k}[0] * 1.0", f"for one in {k}[1:2]:", "    out = out + one.mean()"],
        [f"made = [one.clone() for one in {k}]", "made[1].mul_(0.5)", f"out = {k}[0].mean() + made[1]"],
    )]


def added_in_branches(d):
    """What branches that the data choose write in place, as experts add up what they make of their samples."""
    a, k = d.tensor(lambda t: t.dim() >= 1 and t.shape[-1] >= 2), d.local()
    b = d.like(a)
    start = d.choice(f"torch.zeros_like({a})", f"{a} * 0.5", f"{a}.detach() * 1.0")
    condition = d.choice(f"{a}.sum() > 0.0", "tokens[0, 0] > 5", "tokens[0, 1] > 8", f"{a}.mean() > 0.2")
    written = d.choice(f"{k}.add_({b})", f"{k}[..., :1] = {b}[..., 1:2]", f"{k}[..., 1:].mul_(torch.sin({b}[..., 1:]))",
                       f"{k}.index_add_(0, torch.tensor([0]), {b}[:1])", f"torch._foreach_mul_([{k}], 0.5)",
                       f"torch._foreach_add_([{k}], [{b}])")
    loop = [f"for k in range(int(tokens[0, 0]) % 3):", f"    {k}[..., :1] += {b}[..., :1] * k"]
    branch = d.choice([f"if bool({condition}):", f"    {written}"], loop)
    return [f"{k} = {start}", *d.choice([], [f"{k}.mul_(2.0)"]), LATER, *branch, *d.choice([], [LATER]),
            f"out = {k} * {b}", *d.choice([], [LATER, f"if bool({condition}):", f"    {written}"])]


def kept_or_made(d):
    """A mask that lies in a buffer, or that a branch makes in its place, writing it, as in torch.nn's attention."""
    a, k = d.tensor(lambda t: t.dim() >= 1), d.local()
    b, seen = d.like(a), d.local()
    kept = d.buffer(f"torch.randn({d.shape(a)[-1:]})")
    condition = d.choice(f"not torch.is_floating_point({k})", f"bool({a}.sum() > 0.1)", "bool(tokens[0, 0] > 5)",
                         "not self.training")
    made = d.choice(f"torch.zeros_like({b}).masked_fill_({b} > 0, -1.0)", f"torch.zeros_like({kept}).fill_(0.5)",
                    f"torch.sin({b}).mul_(0.5)")
    written = d.choice([], [], [f"{k} = {k} * 0.5"], [f"{k} = {k}.clone()", f"{k}.mul_(0.5)"])
    return [f"{k} = {kept}", *d.choice([], [LATER]), f"if {condition}:", f"    {k} = {made}", *d.choice([], [LATER]),
            *written, f"{seen} = torch.tanh({a} + {k})", LATER, f"out = {b} * {k} + {seen}.mean()"]


FLOWS = [
    *[kept_list] * 3, *[chosen] * 2, *[kept_dict] * 2, *[nested] * 2, *[made_inside] * 3, *[kept_views] * 3,
    *[kept_numbers] * 2, *[kept_forms] * 3, optional, *[ended_early] * 2, *[carried] * 3, *[drawn_in_branches] * 2,
    *[set_parts] * 3, *[given_on] * 2, *[tied] * 2, *[stateful] * 4, goes_on, *[kept_state] * 2, looked_up,
    traced_layers, *[overwritten] * 2, checked, several, *[added_in_branches] * 2, *[kept_or_made] * 2,
]  # fmt: skip
