"""vpp against stock Python, bit for bit: losses, gradients, parameters, buffers and optimizer state after every step.

check.py --vpp PROGRAM --record PROGRAM [--quick] [--only GLOB ...]   one line a case, then "N passed, M failed"
check.py ... --list           the names of the cases
check.py ... --device cuda    both on a card
check.py ... --break WHAT     spoils what Python is given: the cases must fail
check.py ... --self-test      demands that every such break is caught, where it must show first and in what, and that
                              the key functions of train.py have the test vectors of lib/base/RANDOM.md

A case is a model, its form, an optimizer and a layout of the pipeline: gpt.scripted.adamw.4x1F1B. vpp_record runs its
plan with all ranks in one process. train.py runs once for all layouts: Python has one device.
"""

import argparse
import dataclasses
import fnmatch
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT, DATA = ROOT / "models" / "out", ROOT / "models" / "data"
STEPS = 10
MICROBATCHES = 8  # more than stages, so that 1F1B has a steady phase
SEED = 1234


@dataclasses.dataclass(frozen=True)
class Model:
    batch: int
    data: dict  # field -> file of arrays, or {"text": file}
    loss: tuple[str, str] | None  # kind and target
    groups: tuple[tuple[str, ...], tuple[str, ...]]  # globs of two parameter groups
    inputs: tuple[str, ...] = ()  # data fields, where they are not called as forward's arguments
    sequence_length: int = 128  # of texts


def arrays(name: str, *fields: str) -> dict:
    return {field: DATA / f"{name}_{field}.npy" for field in fields}


def image_model(*last: str) -> Model:
    data = arrays("images", "image", "label")
    return Model(16, data, ("cross_entropy", "label"), (("*.bias",), last), inputs=("image",))


DIGITS = {"data": arrays("digits_train", "image", "label"), "loss": ("cross_entropy", "label")}
TEXT = {"text": DATA / "stdlib.bin"}
MODELS = {
    "mlp": Model(32, arrays("mlp_train", "x", "y"), ("mse", "y"), (("mlp1.*", "mlp8.*"), ("*.fc2.*",))),
    "gpt": Model(8, TEXT, None, (("*.bias", "*ln*"), ("*embedding*",))),
    "bn_cnn": Model(32, **DIGITS, groups=(("*.bias", "*.bn.*"), ("head.*",))),
    "bn_cnn_channels_last": Model(32, **DIGITS, groups=(("*.bias", "*.bn.*"), ("head.*",))),
    "vgg": Model(32, **DIGITS, groups=(("*.bias",), ("classifier.*",))),
    "two_towers": Model(
        32,
        arrays("digits_train", "upper", "lower", "label"),
        ("cross_entropy", "label"),
        (("*.bias", "*.bn.*"), ("head.*",)),
    ),
    "gpt_small": Model(16, TEXT, None, (("*.bias", "*ln*"), ("*embedding*",)), sequence_length=32),
    "gpt_tied": Model(16, TEXT, None, (("*.bias", "*ln*"), ("*embedding*",)), sequence_length=32),
    "encoder_decoder": Model(16, TEXT, None, (("*.bias", "*ln*"), ("decoder.*",)), sequence_length=32),
    "unet": Model(16, arrays("digits_train", "image"), None, (("*.bias", "*.?n?.*"), ("down*",))),
    "dropout": Model(32, **DIGITS, groups=(("*.bias",), ("head.*",))),
    "penalized": Model(16, TEXT, None, (("*.bias",), ("*embedding*",)), sequence_length=32),
    "transformer": Model(16, TEXT, None, (("*.bias", "*norm*"), ("*embedding*",)), sequence_length=32),
    "image_text": Model(32, arrays("digits_train", "image", "caption"), None, (("*.bias",), ("text_tower.*",))),
    "bert": Model(16, TEXT, None, (("*.bias", "*ln*"), ("layers.*",)), sequence_length=32),
    "moe": Model(16, TEXT, None, (("*.bias", "*ln*"), ("*.router.*",)), sequence_length=32),
    "lstm": Model(16, TEXT, None, (("*.bias*",), ("layers.*",)), sequence_length=32),
    "resnet18": image_model("fc.*"),
    "mobilenet_v2": image_model("classifier.*"),
    "squeezenet1_1": image_model("classifier.*"),
    "googlenet": image_model("fc.*"),
    "densenet121": image_model("classifier.*"),
}
FORMS = {"scripted": "", "traced": "_traced"}


@dataclasses.dataclass(frozen=True)
class Optimizer:
    kind: str
    values: dict
    clip_norm: float = 0.0
    groups: tuple[dict, dict] | None = None  # what each of the model's two groups changes
    schedule: dict | None = None


ADAMW = Optimizer(
    "adamw",
    {"lr": 3e-3, "betas": (0.9, 0.95), "weight_decay": 0.1},
    clip_norm=0.7,
    groups=({"weight_decay": 0.0}, {"lr": 1e-3, "eps": 1e-6}),
)
OPTIMIZERS = {
    "adamw": ADAMW,
    "cosine": dataclasses.replace(ADAMW, schedule={"kind": "cosine", "warmup_steps": 3, "min_lr": 1e-4}),
    "adam": Optimizer("adam", {"lr": 1e-3, "weight_decay": 0.01, "amsgrad": True}),
    "sgd": Optimizer("sgd", {"lr": 0.02, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}),
}


@dataclasses.dataclass(frozen=True)
class Layout:
    num_stages: int
    schedule: str
    virtual_chunks: int = 1

    def __str__(self) -> str:
        return f"{self.num_stages}x{self.schedule}"


ONE = Layout(1, "1F1B")
LAYOUTS = [ONE] + [
    Layout(num_stages, schedule, virtual_chunks)
    for num_stages in (2, 4)
    for schedule, virtual_chunks in (("1F1B", 1), ("GPIPE", 1), ("INTERLEAVED_1F1B", 2))
]


# Keys of [train]. A scale that grows every third step is seen to do so; the large one overflows first, then fits.
PRECISIONS = {
    "fp32": {},
    "bf16": {"precision": "bf16"},
    "fp16": {"precision": "fp16", "loss_scale": 1024.0, "loss_scale_every": 3},
    "overflow": {"precision": "fp16", "loss_scale": 2.0**20, "loss_scale_every": 3},
}


# What the parameters are at first: the file's, with those of the model's first group frozen, or drawn from the seed.
STARTS = ("file", "frozen", "seeded")
DRAWN = {"kind": "normal", "std": 0.05}
DRAWN_OF_GROUP = {"kind": "uniform", "low": -0.1, "high": 0.2}


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    form: str
    optimizer: str
    layout: Layout
    deferred: bool = False  # deferred_batch_norm
    replicas: int = 1
    precision: str = "fp32"
    start: str = "file"
    ignored: int | None = None  # class that does not count, and the loss is a mean over the targets of the step

    def __str__(self) -> str:
        more = (".deferred" if self.deferred else "") + (f".dp{self.replicas}" if self.replicas > 1 else "")
        more += "" if self.precision == "fp32" else f".{self.precision}"
        more += "" if self.start == "file" else f".{self.start}"
        more += "" if self.ignored is None else ".target_mean"
        return f"{self.model}.{self.form}.{self.optimizer}.{self.layout}{more}"

    @property
    def weights(self) -> pathlib.Path:
        return OUT / f"{self.model}{FORMS[self.form]}.pt"


def all_cases() -> Iterator[Case]:
    """Every layout with the first optimizer; the others on one stage and on the layout with most edges."""
    for model in MODELS:
        for form in FORMS:
            for name in OPTIMIZERS:
                for layout in LAYOUTS if name == "adamw" else (ONE, LAYOUTS[-1]):
                    yield Case(model, form, name, layout)
    for model in ("bn_cnn", "resnet18"):
        for form in FORMS:
            for layout in (ONE, LAYOUTS[-1]):
                yield Case(model, form, "adamw", layout, deferred=True)
    for model in ("mlp", "gpt_tied", "bn_cnn", "dropout"):
        for deferred in (False, True) if model == "bn_cnn" else (False,):
            for layout in (ONE, LAYOUTS[-1]):
                yield Case(model, "scripted", "adamw", layout, deferred, replicas=3)
    for model in ("gpt_tied", "bn_cnn"):
        for precision in ("bf16", "fp16", "overflow"):
            yield Case(model, "scripted", "adamw", LAYOUTS[-1], replicas=3, precision=precision)
    for model in MODELS:
        for form in FORMS:
            for precision in ("bf16",) if model == "lstm" else ("bf16", "fp16", "overflow"):  # CPUs have no fp16 LSTM
                for layout in (ONE, LAYOUTS[-1]):
                    yield Case(model, form, "adamw", layout, precision=precision)
    yield Case("bn_cnn", "scripted", "adamw", ONE, deferred=True, precision="bf16")
    for model in ("mlp", "gpt_tied", "bn_cnn", "unet"):
        for start in STARTS[1:]:
            for layout in (ONE, LAYOUTS[-1]):
                yield Case(model, "scripted", "sgd", layout, start=start)
    for model in ("bn_cnn", "dropout", "two_towers"):
        for precision in PRECISIONS:
            for layout in (ONE, LAYOUTS[-1]):
                yield Case(model, "scripted", "adamw", layout, replicas=2, precision=precision, ignored=3)


NO_DROPOUT = Case("mlp", "scripted", "cosine", ONE)
DROPOUT = Case("dropout", "scripted", "cosine", ONE)
BF16 = Case("mlp", "scripted", "adamw", ONE, precision="bf16")
TARGET_MEAN = Case("dropout", "scripted", "adamw", Layout(2, "1F1B"), replicas=2, ignored=3)


def quick_cases() -> Iterator[Case]:
    for model in ("mlp", "gpt"):
        yield Case(model, "scripted", "cosine", ONE)
        yield Case(model, "scripted", "cosine", Layout(2, "1F1B"))
    yield Case("bn_cnn", "scripted", "sgd", ONE)
    yield Case("bn_cnn", "traced", "sgd", Layout(2, "GPIPE"), deferred=True)
    yield Case("bn_cnn_channels_last", "scripted", "adamw", Layout(2, "1F1B"))
    yield Case("vgg", "scripted", "adam", ONE)
    for model in ("gpt_tied", "two_towers", "unet", "encoder_decoder", "dropout", "transformer"):
        yield Case(model, "scripted", "adamw", ONE)
    for model in ("image_text", "bert", "moe", "lstm"):
        yield Case(model, "scripted", "adamw", ONE)
    yield Case("moe", "traced", "adamw", Layout(2, "1F1B"))
    yield Case("penalized", "traced", "adamw", Layout(2, "1F1B"))
    yield Case("resnet18", "scripted", "adamw", ONE)
    yield Case("dropout", "scripted", "adamw", ONE, replicas=3)
    yield Case("bn_cnn", "scripted", "sgd", Layout(2, "1F1B"), replicas=2)
    yield Case("gpt_small", "scripted", "adamw", ONE, precision="bf16")
    yield Case("gpt_small", "scripted", "adamw", Layout(2, "1F1B"), precision="fp16")
    yield Case("bn_cnn", "scripted", "adamw", Layout(2, "1F1B"), precision="fp16")
    yield Case("bn_cnn", "scripted", "adamw", ONE, precision="overflow")
    yield Case("unet", "traced", "adamw", Layout(2, "1F1B"), precision="bf16")
    for start in STARTS[1:]:
        yield Case("gpt_tied", "scripted", "adam", Layout(2, "1F1B"), start=start)
        yield Case("bn_cnn", "scripted", "sgd", Layout(2, "1F1B"), start=start)
    yield TARGET_MEAN


def toml(value) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(str(value) if isinstance(value, pathlib.Path) else value)


def section(name: str, values: dict) -> list[str]:
    return [name, *(f"{key} = {toml(value)}" for key, value in values.items())]


def plan_text(case: Case) -> str:
    model, optimizer, layout = MODELS[case.model], OPTIMIZERS[case.optimizer], case.layout
    freeze = {"freeze": model.groups[0]} if case.start == "frozen" else {}
    inputs = {"inputs": model.inputs} if model.inputs else {}
    reduction = {} if case.ignored is None else {"loss_reduction": "target_mean"}
    lines = section("[model]", {"file": case.weights} | inputs | freeze | reduction)
    if case.start == "seeded":
        lines += section("[[model.init]]", {"match": model.groups[0]} | DRAWN_OF_GROUP)
        lines += section("[[model.init]]", {"match": ("*",)} | DRAWN)
    if model.loss:
        ignored = {} if case.ignored is None else {"ignore_index": case.ignored}
        lines += section("[loss]", {"kind": model.loss[0], "target": model.loss[1]} | ignored)
    if "text" in model.data:
        lines += section("[data]", {"kind": "text", "train": (model.data["text"],)})
        lines.append(f"sequence_length = {model.sequence_length}")
    else:
        lines += section("[data]", {"kind": "arrays", "train": model.data})
    if case.replicas > 1:
        lines += section("[mesh]", {"dp": case.replicas, "zero1": True, "bucket_bytes": 20000})
    pipeline = dataclasses.asdict(layout)
    pipeline["schedule_type"] = pipeline.pop("schedule")
    pipeline["deferred_batch_norm"] = case.deferred
    lines += section("[pipeline]", pipeline | {"split_method": "FLOPS", "num_microbatches": MICROBATCHES})
    lines += section("[optimizer]", {"kind": optimizer.kind, "clip_norm": optimizer.clip_norm} | optimizer.values)
    for globs, values in zip(model.groups, optimizer.groups or ()):
        lines += section("[[optimizer.group]]", {"match": globs} | values)
    if optimizer.schedule:
        lines += section("[lr_schedule]", optimizer.schedule)
    train = {"steps": STEPS, "global_batch_size": model.batch * case.replicas, "seed": SEED}
    lines += section("[train]", train | PRECISIONS[case.precision])
    return "\n".join(lines) + "\n"


def learning_rate(schedule: dict | None, base: float, step: int, steps: int = STEPS) -> float:
    """As lib/optim/lr.hpp writes it, in the same order."""
    if not schedule:
        return base
    warmup, low = schedule["warmup_steps"], schedule["min_lr"]
    if step < warmup:
        return base * (step + 1) / warmup
    return low + (base - low) * (0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))))


def learning_rates(optimizer: Optimizer, step: int) -> list[float]:
    """Of the groups, then of what no group takes."""
    bases = [group.get("lr", optimizer.values["lr"]) for group in optimizer.groups or ()] + [optimizer.values["lr"]]
    return [learning_rate(optimizer.schedule, base, step) for base in bases]


@dataclasses.dataclass
class Inputs:
    """What Python is given; a break changes one of them."""

    weights: pathlib.Path
    order: list[list[int]]  # sample indices of a step
    lrs: list[list[float]]
    seed: int
    folder: pathlib.Path  # for files of a break
    autocast: bool = True
    ignored: int | None = None


def break_weight(inputs: Inputs) -> None:
    """The lowest bit of one weight."""
    import torch

    model = torch.jit.load(str(inputs.weights))
    with torch.no_grad():
        bits = next(model.parameters()).view(torch.int32).view(-1)
        bits[0] ^= 1
    inputs.weights = inputs.folder / "broken.pt"
    model.save(str(inputs.weights))


def break_order(inputs: Inputs) -> None:
    """Microbatches 1 and 2 of step 1 change places; with 0 and 1 the sums would stay, since a + b is b + a."""
    samples = inputs.order[1]
    n = len(samples) // MICROBATCHES
    inputs.order[1] = samples[:n] + samples[2 * n : 3 * n] + samples[n : 2 * n] + samples[3 * n :]


def break_lr(inputs: Inputs) -> None:
    """One part in four million, in step 4."""
    inputs.lrs[4] = [lr * (1 + 2**-22) for lr in inputs.lrs[4]]


def break_key(inputs: Inputs) -> None:
    inputs.seed += 1


def break_ignored(inputs: Inputs) -> None:
    """Another class does not count."""
    inputs.ignored += 1


def break_autocast(inputs: Inputs) -> None:
    inputs.autocast = False


@dataclasses.dataclass(frozen=True)
class Break:
    spoil: Callable[[Inputs], None]
    kinds: set[str]  # what must differ
    first_step: int  # where it must differ first
    case: Case = NO_DROPOUT  # of the self-test


BREAKS = {
    "weight": Break(break_weight, {"parameter"}, 0),
    "order": Break(break_order, {"loss", "gradient", "parameter", "optimizer"}, 1),
    "lr": Break(break_lr, {"lr", "parameter"}, 4),
    "ignored": Break(break_ignored, {"loss", "gradient", "parameter"}, 0, TARGET_MEAN),
    "autocast": Break(break_autocast, {"loss", "gradient", "parameter"}, 0, BF16),
    "key": Break(break_key, {"loss", "gradient", "parameter"}, 0, DROPOUT),
}


def run(words: list, **variables: str) -> str:
    environment = os.environ | variables
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{pathlib.Path(words[0]).name} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def read_steps(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def vpp_steps(case: Case, arguments: argparse.Namespace, folder: pathlib.Path) -> list[dict]:
    plan, out = folder / f"{case}.toml", folder / f"{case}.jsonl"
    plan.write_text(plan_text(case))
    run([arguments.record, out, STEPS, plan], VPP_TEST_DEVICE=arguments.device)
    return read_steps(out)


def python_arguments(case: Case, inputs: Inputs, folder: pathlib.Path) -> list[str]:
    model, optimizer = MODELS[case.model], OPTIMIZERS[case.optimizer]
    (folder / "order.txt").write_text("".join(" ".join(map(str, line)) + "\n" for line in inputs.order))
    (folder / "lrs.txt").write_text("".join(" ".join(map(repr, line)) + "\n" for line in inputs.lrs))
    text = "text" in model.data
    words = ["--model", case.model, "--weights", inputs.weights, "--seed", inputs.seed, "--steps", STEPS]
    words += ["--data", *(f"{field}{':' if text else '='}{file}" for field, file in model.data.items())]
    words += ["--order", folder / "order.txt", "--lrs", folder / "lrs.txt", "--microbatches", MICROBATCHES]
    words += ["--sequence-length", model.sequence_length]
    words += ["--replicas", case.replicas]
    if case.deferred:
        words += ["--deferred-batch-norm"]
    if case.start == "frozen":
        words += [f"--freeze={','.join(model.groups[0])}"]
    if case.start == "seeded":
        for globs, rule in ((model.groups[0], DRAWN_OF_GROUP), (("*",), DRAWN)):
            words.append(f"--init={','.join(globs)}:{','.join(f'{key}={value!r}' for key, value in rule.items())}")
    if inputs.autocast:
        words += [f"--{key.replace('_', '-')}={value}" for key, value in PRECISIONS[case.precision].items()]
    if model.loss:
        words += ["--loss", model.loss[0], "--target", model.loss[1]]
    if case.ignored is not None:
        words += ["--loss-reduction", "target_mean", "--ignore-index", inputs.ignored]
    words += ["--optimizer", optimizer.kind, "--clip-norm", optimizer.clip_norm]
    words += [f"--option={key}={value}" for key, value in optimizer.values.items() if key != "lr"]
    for globs, values in zip(model.groups, optimizer.groups or ()):
        options = ",".join(f"{key}={value}" for key, value in values.items() if key != "lr")
        words.append(f"--group={','.join(globs)}:{options}")
    return [str(word) for word in [*words, "--out", folder / "python.jsonl"]]


def python_steps(
    case: Case, arguments: argparse.Namespace, folder: pathlib.Path, spoil: Callable | None
) -> list[dict]:
    """The steps of stock Python, in the words of vpp_record."""
    import train

    plan = folder / "order.toml"
    plan.write_text(plan_text(case))
    order = run([arguments.vpp, "data", "order", "--config", plan, "--steps", STEPS]).splitlines()
    lrs = [learning_rates(OPTIMIZERS[case.optimizer], step) for step in range(STEPS)]
    samples = [list(map(int, line.split())) for line in order]
    inputs = Inputs(case.weights, samples, lrs, SEED, folder, ignored=case.ignored)
    if spoil:
        spoil(inputs)
    train.main([*python_arguments(case, inputs, folder), "--device", arguments.device])
    steps = read_steps(folder / "python.jsonl")
    for step, rates in zip(steps, inputs.lrs):
        step["lr"] = rates[-1]
    return steps


def python_values(step: dict) -> dict[tuple[str, str], object]:
    """(kind, name) -> digest or number of one step, from train.py; gradients that do not exist are left out."""
    values = {("loss", str(i)): float.fromhex(loss).hex() for i, loss in enumerate(step["losses"])}
    values["lr", ""] = step["lr"].hex()
    values["updated", ""] = step["updated"]
    values["loss_scale", ""] = step["loss_scale"]
    if step["grad_norm"] is not None:
        values["grad_norm", ""] = step["grad_norm"]
    for kind, key in (("parameter", "parameters"), ("buffer", "buffers"), ("gradient", "clipped_grads")):
        values |= {(kind, name): digest for name, digest in step[key].items() if digest is not None}
    for name, slots in step["optimizer"].items():
        values |= {("optimizer", f"{name}.{slot}"): digest for slot, digest in slots.items()}
    return values


def vpp_values(step: dict) -> dict[tuple[str, str], object]:
    """The same from vpp_record."""
    values = {("loss", str(i)): float.fromhex(loss).hex() for i, loss in enumerate(step["losses"])}
    values["lr", ""] = float(step["lr"]).hex()
    values["updated", ""] = step["updated"]
    values["loss_scale", ""] = step.get("loss_scale")
    values["grad_norm", ""] = float.fromhex(step["grad_norm"]).hex()
    for kind in ("parameter", "buffer", "gradient", "optimizer"):
        values |= {(kind, name): digest for name, digest in step.get(kind, {}).items()}
    return values


@dataclasses.dataclass
class Comparison:
    compared: int = 0
    differences: list[tuple[int, str, str]] = dataclasses.field(default_factory=list)  # step, kind, name

    def __str__(self) -> str:
        if not self.differences:
            return f"{self.compared} values equal"
        step, kind, name = self.differences[0]
        kinds = ", ".join(sorted({kind for _, kind, _ in self.differences}))
        return f"{len(self.differences)} of {self.compared} values differ ({kinds}); first: step {step}, {kind} {name}"


def compare(ours: list[dict], theirs: list[dict], steps: int = STEPS) -> Comparison:
    """Every value that one of them has; vpp's norm is left out where Python, which does not clip, has none."""
    if len(ours) != steps or len(theirs) != steps:
        raise RuntimeError(f"vpp wrote {len(ours)} steps and Python {len(theirs)} of {steps}")
    result, seen = Comparison(), set()
    for number, (our_step, their_step) in enumerate(zip(ours, theirs)):
        ours_by_name, theirs_by_name = vpp_values(our_step), python_values(their_step)
        if ("grad_norm", "") not in theirs_by_name:
            ours_by_name.pop(("grad_norm", ""))
        seen |= {kind for kind, _ in theirs_by_name}
        for key in [*theirs_by_name, *(key for key in ours_by_name if key not in theirs_by_name)]:
            result.compared += 1
            if ours_by_name.get(key) != theirs_by_name.get(key):
                result.differences.append((number, *key))
    if not {"loss", "lr", "parameter", "gradient", "optimizer"} <= seen:
        raise RuntimeError(f"Python's record has {', '.join(sorted(seen))} only")
    return result


class Counts:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def add(self, name: str, work: Callable[[], tuple[bool, object]]) -> None:
        try:
            passed, text = work()
        except Exception as error:
            passed, text = False, "".join(traceback.format_exception_only(error)).strip()
        print("pass" if passed else "FAIL", f"{name}: {text}", flush=True)
        self.passed, self.failed = self.passed + passed, self.failed + (not passed)


def run_cases(cases: list[Case], arguments: argparse.Namespace, folder: pathlib.Path, counts: Counts) -> None:
    spoil = BREAKS[arguments.spoil].spoil if arguments.spoil else None
    python: dict[Case, list[dict]] = {}

    def work(case: Case) -> tuple[bool, object]:
        key = dataclasses.replace(case, layout=ONE)
        if key not in python:
            python.clear()  # cases of one kind follow each other
            python[key] = python_steps(case, arguments, folder, spoil)
        result = compare(vpp_steps(case, arguments, folder), python[key])
        return not result.differences, result

    for case in cases:
        counts.add(str(case), lambda: work(case))


def check_vectors(page: pathlib.Path) -> tuple[bool, object]:
    """train.py's key functions give what the page about them says."""
    import train

    names = ("mix64", "combine_key", "microbatch_key", "name_key", "transform_key", "site_seed")
    functions = {name: getattr(train, name) for name in names}
    vectors = re.findall(r"^\| `(\w+\(.*\))` \| `(0x[0-9a-f]{16})` \|$", page.read_text(), re.MULTILINE)
    wrong = [call for call, value in vectors if eval(call, functions) != int(value, 16)]
    return len(vectors) > 10 and not wrong, f"{len(vectors)} vectors, wrong: {wrong}"


def self_test(arguments: argparse.Namespace, folder: pathlib.Path, counts: Counts) -> None:
    """The comparison finds every break, and nothing where nothing is broken."""
    ours = {case: vpp_steps(case, arguments, folder) for case in (NO_DROPOUT, DROPOUT, BF16, TARGET_MEAN)}

    def unbroken(case: Case) -> tuple[bool, object]:
        result = compare(ours[case], python_steps(case, arguments, folder, None))
        return not result.differences, result

    def broken(spoilt: Break) -> tuple[bool, object]:
        result = compare(ours[spoilt.case], python_steps(spoilt.case, arguments, folder, spoilt.spoil))
        found = {kind for _, kind, _ in result.differences}
        return spoilt.kinds <= found and result.differences[0][0] == spoilt.first_step, result

    counts.add("self-test: test vectors of keyed randomness", lambda: check_vectors(ROOT / "lib/base/RANDOM.md"))
    for case in ours:
        counts.add(f"self-test: {case}", lambda: unbroken(case))
    for name, spoilt in BREAKS.items():
        counts.add(f"self-test: --break {name} is caught in {spoilt.case}", lambda: broken(spoilt))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vpp", type=pathlib.Path, help="the program vpp")
    parser.add_argument("--record", type=pathlib.Path, help="the program vpp_record")
    parser.add_argument("--quick", action="store_true", help="a few cases instead of all")
    parser.add_argument("--only", nargs="+", default=["*"], metavar="GLOB", help="cases of these names")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where vpp and Python compute")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--break", dest="spoil", choices=BREAKS, help="what to spoil")
    parser.add_argument("--self-test", action="store_true", help="demand that every break is caught")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="leave plans and records there")
    arguments = parser.parse_args()
    cases = list(quick_cases() if arguments.quick else all_cases())
    cases = [case for case in cases if any(fnmatch.fnmatch(str(case), glob) for glob in arguments.only)]
    if arguments.list:
        print(*cases, sep="\n")
        return 0
    if not (arguments.vpp and arguments.record):
        parser.error("--vpp and --record are needed")
    if not cases:
        parser.error(f"no case is called {' '.join(arguments.only)}")
    counts = Counts()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        run_cases(cases, arguments, folder, counts)
        if arguments.self_test:
            self_test(arguments, folder, counts)
    print(f"{counts.passed} passed, {counts.failed} failed")
    return 0 if counts.failed == 0 else 1


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
