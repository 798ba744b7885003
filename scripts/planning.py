"""Writes a page of plans for models past the machine: what `vpp inspect` says of GPTs without weights.

planning.py --vpp PROGRAM FILE
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "models"))
from weightless import SEQUENCE_LENGTH, SHAPES, VOCABULARY  # noqa: E402

FLOPS_PER_MS = 150e12 / 1e3  # of a device at work
LINK_MIB_PER_MS = 25e9 / 2**20 / 1e3
LATENCY_MS = 0.01


@dataclasses.dataclass(frozen=True)
class Layout:
    shape: str
    pp: int
    dp: int
    microbatches: int
    schedule: str
    chunks: int = 1


LAYOUTS = [
    Layout(shape, pp, dp, microbatches, schedule, chunks)
    for shape, pp, dp, microbatches, chunks in (
        ("6.7B", 8, 8, 32, 2),
        ("22B", 8, 64, 64, 2),
        ("175B", 16, 64, 64, 2),
        ("175B", 32, 128, 256, 3),
        ("530B", 35, 8, 280, 3),
        ("1T", 64, 8, 512, 2),
        ("1T", 64, 64, 2048, 2),
    )
    for schedule, chunks in (("1F1B", 1), ("INTERLEAVED_1F1B", chunks), ("ZERO_BUBBLE_V", 2))
]

PAGE = """# Planning past the machine

What `vpp inspect` says of published GPT shapes on up to 4096 ranks, from model files without weights
(`models/weightless.py`). `scripts/planning` made this page on a machine with neither the ranks nor the memory.

Assumed: layers, width and heads of Brown et al. 2020 (6.7B) and Korthikanti et al. 2022 (the others), sequences of
{sequence} tokens, a vocabulary of {vocabulary}; microbatches of one sequence; fp32 with AdamW; no tensor parallelism:
a rank holds whole layers. A device works at 150 TFLOP/s, forward as long as the input's and as the weights' gradient; a
message takes 0.01 ms and 25 GB/s. These are costs given in a `cost_file`, not measured ones: measure a layer of your
own on your device and put it there.

The bubble is the idle share of a simulated step. Memory is that of the fullest rank: weights, gradients and optimizer
state without and with ZeRO-1 (`mesh.zero1`); activations, and what is left of them with
`pipeline.recompute.what = "units"`. Inspect is the time of the whole command.

A stage holds whole layers. Where they do not divide (96 into 64 stages, 105 into 70) some stages have one more than the
others, and the bubble is mostly that.

{table}
"""
COLUMNS = ("model", "parameters", "ranks", "pp x dp", "microbatches", "schedule", "bubble", "step", "weights and state",
           "with ZeRO-1", "activations", "recomputed", "inspect")


def cost_file(shape: str) -> dict:
    layers, d, _ = SHAPES[shape]
    t = SEQUENCE_LENGTH
    forward_ms = (24 * t * d * d + 4 * t * t * d) / FLOPS_PER_MS
    cost = {"F": forward_ms, "I": forward_ms, "W": forward_ms}
    modules = {f"blocks.{layer}": cost for layer in range(layers)}
    return {"unit": "ms", "transfer": LATENCY_MS, "transfer_per_mib": 1 / LINK_MIB_PER_MS, "modules": modules}


def plan_text(layout: Layout, recompute: str) -> str:
    return f"""[model]
file = "gpt_{layout.shape}.pt"
[data]
kind = "synthetic"
samples = 1000000
[data.fields]
tokens = "int64[{SEQUENCE_LENGTH}] < {VOCABULARY}"
targets = "int64[{SEQUENCE_LENGTH}] < {VOCABULARY}"
[mesh]
pp = {layout.pp}
dp = {layout.dp}
[pipeline]
num_microbatches = {layout.microbatches}
schedule_type = "{layout.schedule}"
virtual_chunks = {layout.chunks}
cost_file = "{layout.shape}.json"
smallest_unsplittable_units = ["Block"]
[pipeline.recompute]
what = "{recompute}"
"""


def inspect(vpp: pathlib.Path, folder: pathlib.Path, layout: Layout, recompute: str) -> dict:
    plan = folder / "plan.toml"
    plan.write_text(plan_text(layout, recompute))
    done = subprocess.run([vpp, "inspect", plan, "--json"], text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"planning: {layout}: {done.stderr}")
    return json.loads(done.stdout)["inspection"]


def row(vpp: pathlib.Path, folder: pathlib.Path, layout: Layout) -> list[str]:
    begin = time.monotonic()
    page = inspect(vpp, folder, layout, "none")
    took_s = time.monotonic() - begin
    recomputed = inspect(vpp, folder, layout, "units")

    def fullest(page: dict, *keys: str) -> str:
        return f"{max(sum(rank[key] for key in keys) for rank in page['ranks']) / 2**30:.0f} GiB"

    state = ("weight_bytes", "gradient_bytes")
    return [
        layout.shape,
        f"{page['num_parameters'] / 1e9:.1f} B",
        str(page["num_ranks"]),
        f"{layout.pp} x {layout.dp}",
        str(layout.microbatches),
        layout.schedule + (f", {layout.chunks} a rank" if layout.chunks > 1 else ""),
        f"{100 * page['bubble']:.1f} %",
        f"{page['makespan'] / 1000:.1f} s",
        fullest(page, *state, "unshared_optimizer_bytes"),
        fullest(page, *state, "zero1_optimizer_bytes"),
        fullest(page, "activation_bytes"),
        fullest(recomputed, "activation_bytes"),
        f"{took_s:.1f} s",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vpp", type=pathlib.Path, required=True)
    parser.add_argument("page", type=pathlib.Path)
    arguments = parser.parse_args()
    lines = [" | ".join(COLUMNS), " | ".join("---" for _ in COLUMNS)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for shape in {layout.shape for layout in LAYOUTS}:
            subprocess.run([sys.executable, "-B", ROOT / "models/weightless.py", shape, "--out", folder], check=True)
            (folder / f"{shape}.json").write_text(json.dumps(cost_file(shape)))
        for layout in LAYOUTS:
            lines.append(" | ".join(row(arguments.vpp, folder, layout)))
            print(lines[-1], flush=True)
    table = "\n".join(f"| {line} |" for line in lines)
    arguments.page.write_text(PAGE.format(sequence=SEQUENCE_LENGTH, vocabulary=VOCABULARY, table=table))


if __name__ == "__main__":
    main()
