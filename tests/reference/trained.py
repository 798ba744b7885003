"""What the README of models/ states: whole trainings reach their loss and accuracy, and stock Python reaches the same,
bit for bit.

trained.py --vpp PROGRAM [--only PLAN]   trains plans of configs/ with vpp under mpirun and with train.py, for all their
                                         steps; one line a plan, then "N passed, M failed"

Equal must be: the loss of every microbatch of every step, the weights at the end, and, where forward returns them, the
logits of the validation data. Python's own weights then have to reach what is stated.
"""

import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

import check
import train

CONFIGS = check.ROOT / "configs"
# Plan -> the highest validation loss, and the lowest accuracy on the validation data.
STATED: dict[str, tuple[float, float | None]] = {"digits_cnn": (0.075, 0.975), "quickstart": (2.29, None)}
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
}


def run(words: list, folder: pathlib.Path) -> str:
    done = subprocess.run([str(word) for word in words], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def start_of(plan: dict) -> list:
    return ["mpirun", "-q", "--oversubscribe", "-np", plan["pipeline"]["num_stages"]]


def train_with_vpp(vpp: pathlib.Path, name: str, plan: dict, folder: pathlib.Path) -> list[dict]:
    """The lines of metrics.jsonl; weights and outputs are written too."""
    path = CONFIGS / f"{name}.toml"
    run([*start_of(plan), vpp, "train", path], folder)
    run([vpp, "export", path, "--safetensors", "weights.safetensors"], folder)
    if "loss" in plan:
        run([*start_of(plan), vpp, "eval", path, "--outputs", "outputs"], folder)
    return [json.loads(line) for line in (folder / f"runs/{name}/metrics.jsonl").read_text().splitlines()]


def data_words(plan: dict, subset: str) -> list[str]:
    """As train.py takes them. Paths of a plan begin at its folder."""
    data = plan["data"]
    if data["kind"] == "text":
        return [f"text:{CONFIGS / file}" for file in data[subset]]
    return [f"{field}={CONFIGS / file}" for field, file in data[subset].items()]


def train_with_python(vpp: pathlib.Path, name: str, plan: dict, folder: pathlib.Path) -> list[dict]:
    """The lines of train.py; the weights are in python.pt."""
    optimizer, loss, steps = plan["optimizer"], plan.get("loss"), plan["train"]["steps"]
    (folder / "order.txt").write_text(run([vpp, "data", "order", CONFIGS / f"{name}.toml", "--steps", steps], folder))
    rates = [check.learning_rate(plan.get("lr_schedule"), optimizer["lr"], step, steps) for step in range(steps)]
    (folder / "lrs.txt").write_text("".join(f"{rate!r}\n" for rate in rates))
    file = CONFIGS / plan["model"]["file"]
    words = ["--model", file.stem, "--weights", file, "--data", *data_words(plan, "train")]
    words += ["--sequence-length", plan["data"].get("sequence_length", 0), "--steps", steps]
    words += ["--order", folder / "order.txt", "--lrs", folder / "lrs.txt"]
    words += ["--microbatches", plan["pipeline"]["num_microbatches"], "--optimizer", optimizer["kind"]]
    words += ["--clip-norm", optimizer.get("clip_norm", 0.0)]
    options = {"weight_decay": 0.0} | {key: optimizer[key] for key in ("betas", "weight_decay") if key in optimizer}
    words += [f"--option={key}={value}" for key, value in options.items()]
    for group in optimizer.get("group", []):
        words.append(f"--group={','.join(group['match'])}:weight_decay={group['weight_decay']}")
    if loss:
        words += ["--loss", loss["kind"], "--target", loss["target"]]
    words += ["--out", folder / "python.jsonl", "--save", folder / "python.pt"]
    train.main([str(word) for word in words])
    return check.read_steps(folder / "python.jsonl")


def weights_of(safetensors: pathlib.Path) -> dict[str, bytes]:
    """The format: the length of the header, the header as JSON, the bytes."""
    content = safetensors.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    offsets = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
    return {name: content[begin + first : begin + last] for name, (first, last) in offsets.items()}


def evaluate(plan: dict, folder: pathlib.Path) -> Iterator[tuple[Tensor, Tensor]]:
    """Output and target of Python's model, in microbatches as vpp has them."""
    name = pathlib.Path(plan["model"]["file"]).stem
    model = train.MODELS[name][0]().eval()
    model.load_state_dict(torch.load(folder / "python.pt"))
    fields = train.load_fields(data_words(plan, "val"), plan["data"].get("sequence_length", 0))
    size = plan["train"]["global_batch_size"] // plan["pipeline"]["num_microbatches"]
    samples = plan["train"].get("eval_batches", sys.maxsize) * plan["train"]["global_batch_size"]
    with torch.no_grad():
        for parts in zip(*(values[:samples].split(size) for values in fields.values())):
            if "loss" in plan:
                yield model(*parts[:-1]), parts[-1]
            else:
                yield model(*parts), parts[-1]


def problems_of(vpp: pathlib.Path, name: str, folder: pathlib.Path) -> tuple[list[str], str]:
    """What is wrong, and what was reached."""
    plan = tomllib.loads((CONFIGS / f"{name}.toml").read_text())
    start = time.monotonic()
    lines = train_with_vpp(vpp, name, plan, folder)
    middle = time.monotonic()
    steps = train_with_python(vpp, name, plan, folder)
    text = f"vpp {middle - start:.0f} s, Python {time.monotonic() - middle:.0f} s; "
    problems = []
    ours = [[float(x).hex() for x in line["microbatch_losses"]] for line in lines if line["event"] == "step"]
    theirs = [[float.fromhex(x).hex() for x in step["losses"]] for step in steps]
    if ours != theirs or len(ours) != plan["train"]["steps"]:
        first = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        problems.append(f"losses differ first in step {first} of {len(ours)} and {len(theirs)}")
    weights = weights_of(folder / "weights.safetensors")
    digests = {name: hashlib.sha256(raw).hexdigest() for name, raw in weights.items()}
    expected = steps[-1]["parameters"] | steps[-1]["buffers"]
    wrong = [name for name in expected if digests.get(name) != expected[name]]
    if wrong:
        problems.append(f"{len(wrong)} of {len(expected)} weights differ: {wrong[0]}")
    results = list(evaluate(plan, folder))
    stated_loss, stated_accuracy = STATED[name]
    loss = [line for line in lines if line["event"] == "eval"][-1]["loss"]
    text += f"{len(ours)} steps, {len(expected)} weights; validation loss {loss:.4f}"
    if stated_accuracy is None:
        python_loss = float(torch.stack([output for output, _ in results]).double().mean())
    else:
        logits, targets = (torch.cat(parts) for parts in zip(*results))
        if logits.numpy().tobytes() != np.load(folder / "outputs/output0.npy").tobytes():
            problems.append("logits of the validation data differ")
        python_loss = float(train.LOSSES[plan["loss"]["kind"]](logits.double(), targets))
        accuracy = float((logits.argmax(1) == targets).double().mean())
        text += f", accuracy {accuracy:.4f}"
        if accuracy < stated_accuracy:
            problems.append(f"stated is an accuracy of {stated_accuracy}")
    if max(loss, python_loss) > stated_loss or abs(loss - python_loss) > 1e-5:
        problems.append(f"stated is a loss of {stated_loss}; Python's model has {python_loss:.6f}")
    return problems, text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vpp", type=pathlib.Path, required=True)
    parser.add_argument("--only", choices=STATED)
    arguments = parser.parse_args()
    failed, names = 0, [arguments.only] if arguments.only else list(STATED)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="vpp-test-") as folder:
            problems, text = problems_of(arguments.vpp.resolve(), name, pathlib.Path(folder))
        failed += bool(problems)
        print("FAIL" if problems else "pass", f"{name}: {text}", *problems, flush=True)
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
