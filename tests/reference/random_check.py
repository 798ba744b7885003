"""Models drawn at random (tests/cuts/random_models.py) in vpp against the same models in stock Python, bit for bit.

    random_check.py --vpp PROGRAM --record PROGRAM --models N [--first SEED] [--keep FOLDER]
        [--precision bf16] [--replicas R] [--self-test]

What cuts.random compares went through one graph on both sides; what that graph made of the model shows only here. Ends
with "N passed, M failed"; a model that fails stays under FOLDER/SEED. --self-test demands that one bit of the first
model's weights is noticed.
"""

import argparse
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable

import check
import train

import random_models  # of tests/cuts, whose path train adds

SEED = 1234
# One call in Python and several sites in vpp's graph; without other random ops their numbers do not matter.
SEVERAL_SITES = re.compile(r"torch\.nn\.MultiheadAttention\(\d+, 1, dropout=(.*)\)")
RANDOM = re.compile(r"[dD]ropout|rand|bernoulli|normal_?\(|uniform_|gumbel|rrelu|exponential_|multinomial|scaled_dot|"
                    r"RNN|GRU|LSTM")
OFTEN = re.compile(r" *for \w+ in range\(\d+\):")  # as often in every pass


class NotInPython(Exception):
    """PyTorch cannot train the model so: some layers in bf16, some with these samples."""


def is_random_at_times(forward: str) -> bool:
    """Whether what the data decide has random calls in it."""
    around = []  # indents of branches and loops that a line is in
    for line in forward.splitlines()[1:]:
        indent = len(line) - len(line.lstrip())
        around = [each for each in around if each < indent]
        is_loop = line.lstrip().startswith(("while", "for"))
        if RANDOM.search(line) and (around or (is_loop and not OFTEN.match(line))):
            return True
        if line.endswith(":") and not OFTEN.match(line) and not line.lstrip().startswith("with"):
            around.append(indent)
    return False


def is_seen(source: str) -> bool:
    """Whether the n-th random call of Python is call site n."""
    probabilities = SEVERAL_SITES.findall(source)
    constructor, forward = SEVERAL_SITES.sub("", source).split("def forward")
    if is_random_at_times(forward) or re.search(r"jit\.trace\(.*Dropout", constructor):
        return False
    if "max_norm=" in constructor or "  torch.empty_like(x).uniform_" in forward:
        return False  # torch.jit.script leaves it out; nothing reads it
    layers = constructor.replace("torch.randn(", "")  # a parameter's first values
    return not probabilities or ("0.1" not in probabilities and not RANDOM.search(layers + forward))


def is_cast_alike(source: str) -> bool:
    """Whether autocast has the rules of eager Python throughout, which are vpp's: what Python runs traced has those of
    its compiler, and these take LayerNorm in fp32, say."""
    return "jit.trace(" not in source


def settings(options: argparse.Namespace) -> list[str]:
    """Of the plan, beside what the model's own says."""
    samples = options.replicas * random_models.MICROBATCHES * random_models.SAMPLES_PER_MICROBATCH
    return [f"train.seed={SEED}", f"train.precision={options.precision}", f"train.global_batch_size={samples}",
            f"mesh.dp={options.replicas}"]


def vpp_steps(options: argparse.Namespace, folder: pathlib.Path) -> list[dict]:
    out = folder / "vpp.jsonl"
    check.run([options.record, out, random_models.STEPS, folder / "plan.toml", *settings(options)])
    return check.read_steps(out)


def python_steps(options: argparse.Namespace, folder: pathlib.Path, weights: pathlib.Path) -> list[dict]:
    order, lrs, out = (folder / name for name in ("order.txt", "lrs.txt", "python.jsonl"))
    steps, lr = random_models.STEPS, random_models.LR
    plan = ["--config", folder / "plan.toml", *(word for setting in settings(options) for word in ("--set", setting))]
    order.write_text(check.run([options.vpp, "data", "order", *plan, "--steps", steps]))
    lrs.write_text(f"{lr!r}\n" * steps)
    words = ["--model", folder / "model.py", "--weights", weights, "--seed", SEED, "--steps", steps]
    words += ["--data", f"x={folder}/x.npy", f"tokens={folder}/tokens.npy", "--order", order, "--lrs", lrs]
    words += ["--microbatches", random_models.MICROBATCHES, "--clip-norm", random_models.CLIP_NORM]
    words += ["--replicas", options.replicas, "--precision", options.precision]
    words += [f"--option=weight_decay={random_models.WEIGHT_DECAY}", "--out", out]
    try:
        train.main([str(word) for word in words])
    except RuntimeError as error:
        is_written = "modified by an inplace operation" in str(error)  # in a branch that the data take
        if options.precision == "fp32" and not is_written:  # write_model has seen it train
            raise
        raise NotInPython(str(error).splitlines()[0]) from error
    return [step | {"lr": lr} for step in check.read_steps(out)]


def compare(options: argparse.Namespace, seed: int, spoil: Callable[[check.Inputs], None] | None = None):
    folder = options.keep.resolve() / str(seed)
    has_autocast = options.precision != "fp32"

    def fits(source: str) -> bool:
        return is_seen(source) and (not has_autocast or is_cast_alike(source))

    random_models.write_model(folder, seed, fits=fits)
    inputs = check.Inputs(folder / "model.pt", [], [], SEED, folder)
    if spoil:
        spoil(inputs)
    theirs = python_steps(options, folder, inputs.weights)
    result = check.compare(vpp_steps(options, folder), theirs, random_models.STEPS)
    if spoil or not result.differences:
        shutil.rmtree(folder)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vpp", type=pathlib.Path, required=True)
    parser.add_argument("--record", type=pathlib.Path, required=True, help="the program vpp_record")
    parser.add_argument("--models", type=int, required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--precision", default="fp32", help="fp32 or bf16")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--self-test", action="store_true", help="demand that a wrong bit is noticed")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "vpp_random_check")
    options = parser.parse_args()
    counts = check.Counts()

    def equal(seed: int) -> tuple[bool, object]:
        try:
            result = compare(options, seed)
        except NotInPython as error:
            return True, f"not compared, as PyTorch says: {error}"
        return not result.differences, result

    def broken(seed: int) -> tuple[bool, object]:
        result = compare(options, seed, check.break_weight)
        return bool(result.differences), result

    for seed in range(options.first, options.first + options.models):
        counts.add(f"model {seed}", lambda: equal(seed))
    if options.self_test:
        counts.add("self-test: one bit of a weight is noticed", lambda: broken(options.first))
    print(f"{counts.passed} passed, {counts.failed} failed")
    return 0 if counts.failed == 0 else 1


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
