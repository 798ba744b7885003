"""Statements of random models (random_statements.py) on pictures, whose memory may be in either order: a kernel, and so
its bits, may be chosen by that order, which comes along with a tensor and with a weight."""


def picture(d):
    """A value with four dims, as an expression."""
    if d.choice(True, True, False):
        return d.of_rank(4)
    a = d.tensor(lambda t: t.dim() >= 1 and 2 <= t.shape[-1] <= 128)
    width, channels, size = d.shape(a)[-1], d.choice(2, 3, 4), d.choice(4, 5)
    weight = d.parameter(channels * size * size, width)
    return f"F.linear({a}.reshape([-1, {width}])[:4], {weight}).view([-1, {channels}, {size}, {size}])"


def in_order(d, expression):
    return expression + d.choice("", ".contiguous(memory_format=torch.channels_last)", ".contiguous()",
                                 ".clone(memory_format=torch.channels_last)")


def channels_of(d, expression):
    """Tries it: draws say sizes of values only."""
    return d.worth(expression).shape[1]


def pictured(d):
    a = in_order(d, picture(d))
    channels, made = channels_of(d, a), d.choice(2, 4, 6)
    last = d.choice("", ".to(memory_format=torch.channels_last)")
    conv = f"torch.nn.Conv2d({channels}, {made}, 3, padding=1, bias={d.choice(True, False)}){last}"
    act = d.choice("ReLU(inplace=True)", "SiLU(inplace=True)", "GELU()", "Dropout2d(0.2)", "Hardswish(inplace=True)")
    return d.choice(
        lambda: f"{d.submodule(conv)}({a})",
        lambda: f"{d.old_submodule(conv)}({a})",
        lambda: f"{d.submodule(f'torch.nn.Sequential({conv}, torch.nn.BatchNorm2d({made}), torch.nn.{act})')}({a})",
        lambda: f"{d.submodule(f'torch.nn.Conv2d({channels}, {channels}, 3, 1, 1, 1, {channels}){last}')}({a})",
        lambda: f"{d.submodule(f'torch.nn.ConvTranspose2d({channels}, 3, 2, 2){last}')}({a})",
        lambda: f"{d.submodule(f'torch.nn.BatchNorm2d({channels})')}({a})",
        lambda: f"F.group_norm({a}, {channels})",
        lambda: f"F.instance_norm({a})",
        lambda: f"F.max_pool2d({a}, 2)",
        lambda: f"F.adaptive_max_pool2d({a}, 2)",
        lambda: f"F.adaptive_avg_pool2d({a}, 1)",
        lambda: f"F.interpolate({a}, scale_factor=2.0, mode='{d.choice('nearest', 'bilinear', 'bicubic')}')",
        lambda: f"F.pad({a}, [1, 1, 1, 1], '{d.choice('reflect', 'replicate', 'circular')}')",
    )()


def arranged(d):
    """Pixels and channels in other places, and ops that look at the order of memory."""
    a = in_order(d, picture(d))
    n = channels_of(d, a)
    grid = "F.affine_grid(torch.tensor([[0.8, 0.1, 0.0], [-0.1, 0.9, 0.2]]).expand([out.shape[0], 2, 3])"
    return d.choice(
        f"F.pixel_shuffle(torch.cat([{a}, {a}, {a}, {a}], 1), 2)",
        f"F.pixel_unshuffle(F.pad({a}, [0, {a}.shape[3] % 2, 0, {a}.shape[2] % 2]), 2)",
        f"F.channel_shuffle(torch.cat([{a}, {a}], 1), 2)",
        f"{a}.mean([2, 3])",
        f"{a}.flatten(2).transpose(1, 2)",
        f"{a}.permute([0, 2, 3, 1])",
        f"F.layer_norm({a}.permute([0, 2, 3, 1]), [{n}]).permute([0, 3, 1, 2])",
        f"torch.empty_like({a}).copy_({a}) * 0.5",
        f"({a} * 1.0).mul_(torch.sigmoid({a}.mean([2, 3], keepdim=True)))",
        [f"out = {a} * 1.0", f"out = F.grid_sample(out, {grid}, out.shape, align_corners=False), align_corners=False)"],
        [f"whole = {a} * 1.0", "pooled, places = F.max_pool2d(whole, 2, return_indices=True)",
         "out = F.max_unpool2d(torch.sin(pooled), places, 2, output_size=whole.shape[2:])"],
        [f"whole = {a} * 1.0", "if whole.is_contiguous(memory_format=torch.channels_last):", "    out = whole * 0.5",
         "else:", "    out = torch.tanh(whole)"],
        [f"whole = {a} * 1.0", f"columns = F.unfold(whole, 2, stride=2)",
         "out = F.fold(torch.tanh(columns), whole.shape[2:], 2, stride=2)"],
    )


PICTURES = [*[pictured] * 3, arranged]
