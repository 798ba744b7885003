"""One-device training with stock PyTorch: what vpp must equal bit for bit.

It follows a plan given by arguments: the eager module of models/ with the weights of the exported file, sample
indices from `vpp data order`, M microbatches in order with one backward each, replicas one after the other and their
gradients added in order, clipping, a fused optimizer, one thread. For each step it writes a JSON line: losses as
float hex, and the SHA-256 of the raw bytes of every gradient (as accumulated, and as clipped), parameter, buffer and
optimizer state, by name. With `--device cuda` the device is a card, with the exact kernels that vpp asks for there.

    train.py --model gpt --weights models/out/gpt.pt --data text:models/data/stdlib.bin --sequence-length 128
             --order order.txt --lrs lrs.txt --microbatches 8 --optimizer adamw --option weight_decay=0.1 --clip-norm 1
             --group '*.bias,*ln*:weight_decay=0.0' --steps 10 --out steps.jsonl
"""

import argparse
import ast
import contextlib
import fnmatch
import hashlib
import inspect
import json
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("models", "tests/cuts", "tests/support")]
from exact_kernels import use_exact_kernels  # noqa: E402
from export import MODELS  # noqa: E402

import make_models  # noqa: E402
import random_models  # noqa: E402

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
OPTIMIZERS = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam, "sgd": torch.optim.SGD}
LOSSES = {
    "cross_entropy": F.cross_entropy,
    "mse": F.mse_loss,
    "nll": F.nll_loss,
    "bce_with_logits": F.binary_cross_entropy_with_logits,
    "l1": F.l1_loss,
}
MASK = (1 << 64) - 1


def mix64(x: int) -> int:
    """As in lib/base/random.hpp, like the five functions below."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def combine_key(key: int, number: int) -> int:
    return mix64(key ^ mix64(number))


def microbatch_key(seed: int, step: int, replica: int, microbatch: int) -> int:
    return combine_key(combine_key(combine_key(mix64(mix64(seed)), step), replica), microbatch)


def transform_key(seed: int, epoch: int, sample: int) -> int:
    return combine_key(combine_key(mix64(mix64(mix64(seed))), epoch), sample)


def site_seed(key: int, site: int, execution: int) -> int:
    return combine_key(combine_key(key, site), execution)


def name_key(seed: int, name: str) -> int:
    key = mix64(seed)
    for byte in name.encode():
        key = combine_key(key, byte)
    return key


# What LibTorch marks as random, whatever its probability: such a call is one call site of vpp's graph.
RANDOM = {
    F.dropout,
    F.dropout1d,
    F.dropout2d,
    F.dropout3d,
    F.alpha_dropout,
    F.feature_alpha_dropout,
    F.scaled_dot_product_attention,
    torch.lstm,
    torch.gru,
    torch.rnn_tanh,
    torch.rnn_relu,
    F.gumbel_softmax,
    F.rrelu,
    torch.bernoulli,
    torch.multinomial,
    torch.normal,
    torch.rand,
    torch.rand_like,
    torch.randint,
    torch.randperm,
    torch.randn_like,
    Tensor.bernoulli_,
    Tensor.exponential_,
    Tensor.normal_,
    Tensor.uniform_,
}


class KeyedRandomness(TorchFunctionMode):
    """Seeds before every random call. Without loops the n-th one of a forward pass is call site n, run for the first
    time. What a random function calls inside itself is not seen."""

    def __init__(self, key: int) -> None:
        super().__init__()
        self.key, self.calls = key, 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in RANDOM:
            torch.manual_seed(site_seed(self.key, self.calls, 0))
            self.calls += 1
        return function(*args, **(kwargs or {}))


def load_model(name: str, weights: str) -> nn.Module:
    if name.endswith(".py"):
        model = random_models.load_class(name)()
    else:
        model = make_models.make_model(name) if name in make_models.MODELS else MODELS[name][0]()
    model.load_state_dict(torch.jit.load(weights, map_location="cpu").state_dict())
    return model.train()


class DeferredStatistics:
    """One update of a BatchNorm's running statistics a step, as torchgpipe's DeferredBatchNorm has it."""

    def __init__(self, norm: nn.modules.batchnorm._BatchNorm) -> None:
        self.norm = norm
        norm.forward = self.forward
        self.forget()

    def forget(self) -> None:
        self.sum, self.squares = torch.zeros_like(self.norm.running_mean), torch.zeros_like(self.norm.running_var)
        self.count = 0

    def forward(self, x: Tensor) -> Tensor:
        dims = [0, *range(2, x.dim())]
        with torch.no_grad():
            wide = x.to(torch.promote_types(x.dtype, torch.float32))
            self.sum += wide.sum(dims)
            self.squares += (wide**2).sum(dims)
        self.count += x.numel() // x.size(1)
        return F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, True, 0.0, self.norm.eps)

    def commit(self) -> None:
        norm = self.norm
        norm.num_batches_tracked += 1
        m = 1.0 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
        mean = self.sum / self.count
        var = (self.squares / self.count - mean**2).clamp_min(0)
        for running, new in ((norm.running_mean, mean), (norm.running_var, var)):
            running *= 1 - m
            running += new * m
        self.forget()


def load_fields(specs: list[str], t: int) -> dict[str, Tensor]:
    """field=file.npy, or text:file (bytes) and tokens:file (uint16) as windows: sample i is [i t, i t + t]."""
    fields = {}
    for spec in specs:
        kind, _, file = spec.partition(":")
        if kind in ("text", "tokens"):
            values = torch.from_numpy(np.fromfile(file, np.uint8 if kind == "text" else np.uint16).astype(np.int64))
            n = (len(values) - 1) // t
            fields["tokens"] = values[: n * t].view(n, t)
            fields["targets"] = values[1 : n * t + 1].view(n, t)
        else:
            field, _, file = spec.partition("=")
            fields[field] = torch.from_numpy(np.load(file))
    return fields


def parse_options(pairs: list[str]) -> dict:
    return {key: ast.literal_eval(value) for key, _, value in (pair.partition("=") for pair in pairs)}


def parameter_groups(model: nn.Module, specs: list[str]) -> list[dict]:
    """The first group that matches takes the parameter; what none takes is the last group."""
    patterns = [spec.partition(":")[0].split(",") for spec in specs] + [["*"]]
    groups = [parse_options(spec.partition(":")[2].split(",")) for spec in specs] + [{}]
    for group in groups:
        group["params"] = []
    for name, parameter in model.named_parameters():
        index = next(i for i, globs in enumerate(patterns) if any(fnmatch.fnmatchcase(name, g) for g in globs))
        groups[index]["params"].append(parameter)
    return groups


def freeze(model: nn.Module, globs: list[str]) -> None:
    for name, parameter in model.named_parameters():
        if any(fnmatch.fnmatchcase(name, glob) for glob in globs):
            parameter.requires_grad_(False)


@torch.no_grad()
def draw(model: nn.Module, specs: list[str], seed: int) -> None:
    """Parameters from the seed, as lib/base/RANDOM.md says; the first rule that matches a parameter draws it."""
    rules = [(spec.partition(":")[0].split(","), parse_options(spec.partition(":")[2].split(","))) for spec in specs]
    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(name_key(seed, name))
        values = next((rule for globs, rule in rules if any(fnmatch.fnmatchcase(name, glob) for glob in globs)), None)
        if values and values["kind"] == "normal":
            parameter.normal_(values.get("mean", 0.0), values["std"], generator=generator)
        elif values:
            parameter.uniform_(values["low"], values["high"], generator=generator)


def digest(tensor: Tensor | None) -> str | None:
    """Of the values in C order; None for a gradient that does not exist."""
    if tensor is None:
        return None
    values = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(values.view(torch.uint8).numpy().tobytes()).hexdigest()


def grad_digests(model: nn.Module) -> dict[str, str | None]:
    return {name: digest(parameter.grad) for name, parameter in model.named_parameters()}


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager:
    """Without the cache every use of a parameter is a cast of its own, wherever a pipeline cuts."""
    if precision == "fp32":
        return contextlib.nullcontext()
    return torch.autocast(device, dtype=DTYPES[precision], cache_enabled=False)


def loss_factor(batch: dict[str, Tensor], args: argparse.Namespace) -> float:
    """What the loss of a microbatch is multiplied by; `batch` has all samples of the step."""
    if args.loss_reduction == "target_mean":
        return 1 / int((batch[args.target] != args.ignore_index).sum())
    return 1 / (args.microbatches * args.replicas) if args.loss_reduction == "mean" else 1.0


def compare(output: Tensor, target: Tensor, args: argparse.Namespace) -> Tensor:
    options = {"ignore_index": args.ignore_index} if args.loss in ("cross_entropy", "nll") else {}
    reduction = "mean" if args.loss_reduction == "mean" else "sum"
    return LOSSES[args.loss](output, target, reduction=reduction, **options)


def run_replica(
    model: nn.Module,
    batch: dict[str, Tensor],
    step: int,
    replica: int,
    args: argparse.Namespace,
    scaler: torch.amp.GradScaler,
    factor: float,
) -> list[str]:
    """One backward a microbatch; gives the losses."""
    losses = []
    for m, values in enumerate(zip(*(field.chunk(args.microbatches) for field in batch.values()))):
        # Tensors of their own: of a view that begins anywhere in memory the BLAS makes other sums.
        inputs = dict(zip(batch, (value.clone().to(args.device) for value in values)))
        target = inputs.pop(args.target) if args.loss else None
        with autocast(args.precision, args.device):
            with KeyedRandomness(microbatch_key(args.seed, step, replica, m)):
                output = model(*inputs.values())
            loss = compare(output, target, args) if args.loss else output
        scaler.scale(loss * factor).backward()
        losses.append(loss.item().hex())
    return losses


def add_up(gradients: list[list[Tensor | None]]) -> list[Tensor | None]:
    """Of the replicas, by parameter: ((g0 + g1) + g2) ..., over those that have one."""
    sums = []
    for parts in zip(*gradients):
        total = None
        for part in parts:
            if part is not None:
                total = part if total is None else total + part
        sums.append(total)
    return sums


def state_of(model: nn.Module) -> list[Tensor]:
    return [*model.parameters(), *model.buffers()]


def run_replicas(
    model: nn.Module,
    batch: dict[str, Tensor],
    step: int,
    args: argparse.Namespace,
    deferred: list[DeferredStatistics],
    scaler: torch.amp.GradScaler,
) -> list[str]:
    """Leaves the sums in `.grad`. Replica 0 comes last: what forward writes, buffers and parameters, is its own."""
    begin = [tensor.detach().clone() for tensor in state_of(model)]
    gradients, losses = [], []
    for replica in reversed(range(args.replicas)):
        for tensor, before in zip(state_of(model), begin):
            tensor.detach().copy_(before)
        for statistics in deferred:
            statistics.forget()
        model.zero_grad(set_to_none=True)
        part = {name: values.chunk(args.replicas)[replica] for name, values in batch.items()}
        losses = run_replica(model, part, step, replica, args, scaler, loss_factor(batch, args)) + losses
        gradients.insert(0, [parameter.grad for parameter in model.parameters()])
    for parameter, total in zip(model.parameters(), add_up(gradients)):
        parameter.grad = total
    return losses


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    clip_norm: float,
    buffers: dict[str, Tensor],
) -> tuple[str | None, bool]:
    """The norm, and whether the step updated. An overflow skips the step in GradScaler; nothing is clipped then, and
    the buffers are those before the step: vpp takes the whole step back."""
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    overflow = scaler.is_enabled() and not all(torch.isfinite(gradient).all() for gradient in gradients)
    norm = None
    if overflow:
        norm = nn.utils.get_total_norm(gradients).item().hex()
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    elif clip_norm > 0:
        norm = nn.utils.clip_grad_norm_(model.parameters(), clip_norm).item().hex()
    scaler.step(optimizer)
    return norm, not overflow


def run_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    batch: dict[str, Tensor],
    step: int,
    args: argparse.Namespace,
    deferred: list[DeferredStatistics],
) -> dict:
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    scale = scaler.get_scale()
    losses = run_replicas(model, batch, step, args, deferred, scaler)
    scaler.unscale_(optimizer)
    grads = grad_digests(model)
    norm, updated = update(model, optimizer, scaler, args.clip_norm, before)
    clipped = grad_digests(model)
    scaler.update()
    for statistics in deferred:
        statistics.commit() if updated else statistics.forget()
    states = {
        name: {key: digest(value) for key, value in sorted(optimizer.state[parameter].items()) if value is not None}
        for name, parameter in model.named_parameters()
        if optimizer.state[parameter].get("step") != 0  # made in a step that was skipped: as good as none
    }
    return {
        "step": step,
        "losses": losses,
        "updated": updated,
        "loss_scale": scale if scaler.is_enabled() else None,
        "grad_norm": norm,
        "grads": grads,
        "clipped_grads": clipped,
        "parameters": {name: digest(parameter) for name, parameter in model.named_parameters()},
        "buffers": {name: digest(buffer) for name, buffer in model.named_buffers()},
        "optimizer": states,
    }


def known_model(text: str) -> str:
    names = [*MODELS, *make_models.MODELS]
    if text.endswith(".py") or text in names:
        return text
    raise argparse.ArgumentTypeError(f"no model is called {text}; there are {', '.join(names)}")


def parse_arguments(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=known_model, help="a name, or a file.py with a class Model")
    parser.add_argument("--weights", required=True, help="the TorchScript file whose weights are taken")
    parser.add_argument("--data", required=True, nargs="+", help="field=file.npy ..., text:FILE or tokens:FILE")
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--order", required=True, help="sample indices, one line a step")
    parser.add_argument("--lrs", required=True, help="learning rates, one line a step: one number, or one per group")
    parser.add_argument("--microbatches", type=int, required=True, help="of a replica")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--loss", choices=LOSSES, help="when forward does not return the loss")
    parser.add_argument("--target", help="the field that --loss compares with; the others are forward's arguments")
    parser.add_argument("--loss-reduction", choices=("mean", "sum", "target_mean"), default="mean")
    parser.add_argument("--ignore-index", type=int, default=-100, help="of classes: a target that does not count")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="adamw")
    parser.add_argument("--option", action="append", default=[], help="key=value of the optimizer")
    parser.add_argument("--group", action="append", default=[], help="GLOB,GLOB:key=value,key=value")
    parser.add_argument("--clip-norm", type=float, default=0.0)
    parser.add_argument("--precision", choices=("fp32", *DTYPES), default="fp32", help="of torch.autocast")
    parser.add_argument("--loss-scale", type=float, default=65536.0, help="of the first step, in fp16")
    parser.add_argument("--loss-scale-every", type=int, default=2000, help="steps after which it doubles")
    parser.add_argument("--freeze", type=lambda text: text.split(","), default=[], metavar="GLOB,GLOB")
    parser.add_argument("--init", action="append", default=[], help="GLOB,GLOB:kind='normal',std=0.1")
    parser.add_argument("--deferred-batch-norm", action="store_true", help="one update of running statistics a step")
    parser.add_argument("--seed", type=int, default=1234, help="train.seed of the plan: the key of what is random")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where it computes")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--save", help="a file for the weights after the last step")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    args = parse_arguments(words)
    torch.set_num_threads(1)
    if args.device == "cuda":
        use_exact_kernels()
    model = load_model(args.model, args.weights)
    freeze(model, args.freeze)
    draw(model, args.init, args.seed)
    model.to(args.device)
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    deferred = [DeferredStatistics(norm) for norm in norms if args.deferred_batch_norm]
    fields = load_fields(args.data, args.sequence_length)
    arguments = inspect.signature(model.forward).parameters
    if set(arguments) <= set(fields):  # what forward does not ask for is left out, as in vpp
        fields = {name: fields[name] for name in (*arguments, args.target) if name in fields}
    groups = parameter_groups(model, args.group)
    orders = [[int(i) for i in line.split()] for line in pathlib.Path(args.order).read_text().splitlines()]
    lrs = [[float(x) for x in line.split()] for line in pathlib.Path(args.lrs).read_text().splitlines()]
    used = [i for i, group in enumerate(groups) if group["params"]]  # an optimizer refuses an empty group
    options = {"lr": lrs[0][0]} | parse_options(args.option)
    optimizer = OPTIMIZERS[args.optimizer]([groups[i] for i in used], fused=True, **options)
    scaler = torch.amp.GradScaler(
        args.device, init_scale=args.loss_scale, growth_interval=args.loss_scale_every, enabled=args.precision == "fp16"
    )
    with open(args.out, "w") as out:
        for step in range(args.steps):
            for i, group in zip(used, optimizer.param_groups):
                group["lr"] = lrs[step][i] if len(lrs[step]) > 1 else lrs[step][0]
            batch = {name: values[orders[step]] for name, values in fields.items()}
            out.write(json.dumps(run_step(model, optimizer, scaler, batch, step, args, deferred)) + "\n")
    if args.save:
        torch.save(model.state_dict(), args.save)


if __name__ == "__main__":
    main()
