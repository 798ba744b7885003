"""The matrix of exactness: schedule x model x cuts x recompute x microbatches x ranks, all with the bits of one device.

verify_matrix.py [MODEL ...]              every combination, ten steps; a table, and what was refused and why
verify_matrix.py --pairwise [MODEL ...]   of each model as many as have every pair of values, two steps
verify_matrix.py --once [MODEL ...]       of each model every schedule once or twice, which is quick
verify_matrix.py --traced ...             the traced twins of the models
verify_matrix.py --precision bf16 ...     pipeline and one device at that precision
verify_matrix.py --device cuda ...        on cards, where they are; default: auto
verify_matrix.py --transport nccl ...     values go between cards by NCCL; default: auto
verify_matrix.py --self-test              breaks the exactness on purpose, which must be found

Each model is one job of `vpp verify`; VPP_BINARY and VPP_MPIRUN name the programs. Ends with "N passed, M failed".
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import ENVIRONMENT, ROOT, VPP, Case  # noqa: E402

RANKS = 4
KINDS = ("loss", "gradient", "norm", "parameter", "optimizer")  # of what is compared

TEXT = f"""[data]
kind = "text"
train = ["{ROOT}/models/data/stdlib.bin"]
sequence_length = 16
"""


def arrays(name: str, *fields: str) -> str:
    lines = [f'{field} = "{ROOT}/models/data/{name}_train_{field}.npy"\n' for field in fields]
    return '[data]\nkind = "arrays"\n[data.train]\n' + "".join(lines)


def loss(kind: str, target: str) -> str:
    return f'[loss]\nkind = "{kind}"\ntarget = "{target}"\n'


@dataclasses.dataclass(frozen=True)
class Model:
    data: str  # sections of the plan
    units: tuple[str, ...]  # what recompute by units takes for one
    modules: str  # a list for recompute, with parts of units and across them
    file: str = ""  # of models/out; default: the name
    buffers: bool = False
    without_decay: str = "*.bias"


DIGITS = arrays("digits", "image", "label") + loss("cross_entropy", "label")
MODELS = {
    "mlp": Model(arrays("mlp", "x", "y") + loss("mse", "y"), ("MLP",), "mlp2.fc1:mlp5:mlp7.*", without_decay="*.fc2.*"),
    "gpt": Model(TEXT, ("Block",), "blocks.*.attn:ln_out", file="gpt_small"),
    "gpt_tied": Model(TEXT, ("Block",), "blocks.*.attn:token_embedding"),
    "bn_cnn": Model(DIGITS, ("ConvBlock",), "block2:block4.bn", buffers=True),
    "bn_cnn_channels_last": Model(DIGITS, ("ConvBlock",), "block2:block4.bn", buffers=True),
    "unet": Model(arrays("digits", "image"), ("DoubleConv",), "down1:join*", buffers=True),
    "two_towers": Model(
        arrays("digits", "upper", "lower", "label") + loss("cross_entropy", "label"),
        ("UpperTower", "LowerTower", "Mix"),
        "lower:head",
        buffers=True,
    ),
    "encoder_decoder": Model(TEXT, ("EncoderLayer", "DecoderLayer"), "encoder.0:decoder.*.cross"),
    "moe": Model(TEXT, ("MoEBlock",), "blocks.*.mixture:ln_out"),
    "transformer": Model(TEXT, ("TransformerEncoderLayer",), "encoder.layers.0:head"),
    "lstm": Model(TEXT, ("LSTM",), "layers.0:head"),
    "dropout": Model(DIGITS, ("DropoutBlock",), "channels:blocks.*.attn"),
}
# What LibTorch does not run on CPUs at a precision: with stock Python neither.
WITHOUT_KERNELS = {"fp16": ["lstm"]}


def plan_text(name: str, form: str) -> str:
    model = MODELS[name]
    inputs = 'inputs = ["image"]\n' if "image =" in model.data else ""
    return f"""[model]
file = "{ROOT}/models/out/{model.file or name}{form}.pt"
{inputs}{model.data}
[pipeline]
num_microbatches = 4
smallest_unsplittable_units = {json.dumps(model.units)}
[optimizer]
lr = 0.003
weight_decay = 0.1
clip_norm = 0.7
[[optimizer.group]]
match = ["{model.without_decay}"]
weight_decay = 0.0
[train]
steps = 10
global_batch_size = 8
"""


@dataclasses.dataclass(frozen=True)
class Axes:
    """What is combined, beside every schedule, and of which files."""

    cuts: int
    steps: int
    form: str = ""  # of the files: "_traced"
    stages: tuple[int, ...] = (1, 2, 3, 4)
    microbatches: tuple[int, ...] = (1, 3, 8, 13)
    recompute: tuple[str, ...] = ("none", "stage", "units:2", "modules:", "stage:except_last")

    def arguments(self, modules: str) -> list[str]:
        recompute = [what + modules if what == "modules:" else what for what in self.recompute]
        words = ["--all-schedules", "--cuts", f"random:{self.cuts}", "--steps", str(self.steps)]
        words += ["--stages", ",".join(map(str, self.stages)), "--recompute", ",".join(recompute)]
        return [*words, "--microbatches", ",".join(map(str, self.microbatches))]


@dataclasses.dataclass
class Outcome:
    """What one job said, and what is wrong with that."""

    name: str
    seconds: float
    result: dict
    problems: list[str]

    def refused(self) -> int:
        return sum(len(layouts) for layouts in self.result.get("layouts_refused", {}).values())

    def row(self) -> str:
        different = len(self.result.get("layouts_different", []))
        equal = self.result.get("layouts", 0) - different
        values = self.result.get("values", 0)
        return f"{self.name:16}{equal:7}{different:11}{self.refused():9}{values:12}{self.seconds:9.0f}"


def problems_of(name: str, axes: Axes, code: int, error: str, result: dict) -> list[str]:
    """An empty or partial comparison is as bad as a difference."""
    if not result:
        return [f"vpp verify ended with {code} and said nothing: {error[-2000:]}"]
    problems = []
    if code != 0 or not result["equal"] or result["layouts_different"]:
        problems.append(f"{len(result['layouts_different'])} different (code {code}); {result['difference']}")
    kinds = KINDS + (("buffer",) if MODELS[name].buffers else ())
    problems += [f"no {kind} was compared" for kind in kinds if not result["values_by_kind"].get(kind)]
    problems += [f"no layout of {schedule} ran" for schedule, n in result["schedules"].items() if not n["equal"]]
    if result["layouts_through_host"]:
        problems.append(f"nothing went from card to card in {', '.join(result['layouts_through_host'])}")
    if result["steps"] != axes.steps or result["references"] != len(axes.microbatches):
        problems.append(f"{result['steps']} steps and {result['references']} references")
    return problems


def run(name: str, axes: Axes, *arguments: str) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="vpp-test-") as folder:
        plan = pathlib.Path(folder) / "plan.toml"
        plan.write_text(plan_text(name, axes.form))
        words = ["verify", str(plan), *axes.arguments(MODELS[name].modules), "--json", "--log-level", "warn"]
        start = time.monotonic()
        command = Case.command((*words, *arguments), RANKS)
        done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, text=True, capture_output=True, check=False)
    result = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    problems = problems_of(name, axes, done.returncode, done.stderr, result)
    return Outcome(name, time.monotonic() - start, result, problems)


def print_refusals(outcomes: list[Outcome]) -> None:
    """How often each rule refused, of all models; a reason begins with its rule."""
    counts: dict[str, tuple[int, str]] = {}
    for outcome in outcomes:
        for reason, layouts in outcome.result.get("layouts_refused", {}).items():
            rule = reason.partition(" (got")[0]
            count, example = counts.get(rule, (0, f"{outcome.name}: {layouts[0]}"))
            counts[rule] = (count + len(layouts), example)
    for rule, (count, example) in sorted(counts.items(), key=lambda item: -item[1][0]):
        print(f"refused {count} (first {example}): {rule}")


def run_models(names: list[str], axes: Axes, pairwise: bool, settings: list[str]) -> int:
    """The number of models that failed. Settings: KEY=VALUE of every plan."""
    print(f"{'model':16}{'equal':>7}{'different':>11}{'refused':>9}{'values':>12}{'seconds':>9}")
    outcomes = []
    for number, name in enumerate(names):
        words = [word for setting in settings for word in ("--set", setting)] + (["--pairwise"] if pairwise else [])
        outcomes.append(run(name, axes, "--seed", str(number + 1), *words))
        print(outcomes[-1].row(), flush=True)
    print_refusals(outcomes)
    if pairwise:
        counts = [outcome.result["pairwise"] for outcome in outcomes if "pairwise" in outcome.result]
        pairs, impossible, combinations = (
            sum(count[key] for count in counts) for key in ("pairs", "impossible", "combinations")
        )
        taken = sum(outcome.result.get("layouts", 0) for outcome in outcomes)
        print(
            f"pairwise: {taken} of {combinations} combinations have all {pairs} pairs that are allowed; "
            f"{impossible} more are refused in every combination"
        )
    for outcome in outcomes:
        for problem in outcome.problems:
            print(f"FAIL {outcome.name}: {problem}")
    return sum(bool(outcome.problems) for outcome in outcomes)


def self_test() -> int:
    """Gradients of tied weights that are summed once a step have other bits: only where weights are tied."""
    axes = Axes(cuts=1, steps=2, stages=(1, 2), microbatches=(3, 8), recompute=("none", "stage"))
    failed = 0
    for name, must_differ in (("gpt_tied", True), ("encoder_decoder", True), ("gpt", False)):
        outcome = run(name, axes, "--pairwise", "--set", "pipeline.tied_gradients=per_step")
        found = any(" different (code 80)" in problem for problem in outcome.problems)
        passed = found if must_differ else not outcome.problems
        failed += not passed
        what = f"{len(outcome.result.get('layouts_different', []))} of {outcome.result.get('layouts')} differ"
        print("pass" if passed else "FAIL", f"self-test: {name} with sums per step: {what}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MODEL", help=f"any of {', '.join(MODELS)}; default: all")
    parser.add_argument("--pairwise", action="store_true", help="every pair of values instead of every combination")
    parser.add_argument("--once", action="store_true", help="every schedule, and else one value of each kind")
    parser.add_argument("--traced", action="store_true", help="traced models instead of scripted ones")
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp32", help="train.precision")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="mesh.device")
    parser.add_argument("--transport", choices=("auto", "mpi", "nccl"), default="auto", help="mesh.transport")
    parser.add_argument("--self-test", action="store_true", help="that differences are found")
    parser.add_argument("--cuts", type=int, help="sets of random cuts of a layout; default: 2 for pairs, else 1")
    parser.add_argument("--steps", type=int, help="default: 2 for pairs, else 10")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in MODELS]
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    if not VPP:
        parser.error("VPP_BINARY names no program")
    if arguments.self_test:
        total, failed = 3, self_test()
    else:
        runnable = [name for name in MODELS if name not in WITHOUT_KERNELS.get(arguments.precision, [])]
        names, pairwise = arguments.names or runnable, arguments.pairwise
        cuts, steps = arguments.cuts or (2 if pairwise else 1), arguments.steps or (2 if pairwise else 10)
        axes = Axes(cuts, steps, form="_traced" if arguments.traced else "")
        if arguments.once:
            axes = dataclasses.replace(axes, stages=(RANKS,), microbatches=(8,), recompute=("none",))
        settings = [f"train.precision={arguments.precision}", f"mesh.device={arguments.device}"]
        if arguments.transport != "auto":  # a build without CUDA parts has no such word
            settings.append(f"mesh.transport={arguments.transport}")
        total, failed = len(names), run_models(names, axes, pairwise, settings)
    print(f"{total - failed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
