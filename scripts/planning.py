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

import torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "models"))
from gpt import GPT  # noqa: E402
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
MEASURED_SHAPES = ("6.7B", "22B", "175B")  # planned with measured costs too, on the fewest ranks


@dataclasses.dataclass(frozen=True)
class Rates:
    """Milliseconds of a layer's forward, input gradient and weight gradient for each of its forward FLOPs."""

    F: float
    I: float  # noqa: E741
    W: float


GIVEN = Rates(1 / FLOPS_PER_MS, 1 / FLOPS_PER_MS, 1 / FLOPS_PER_MS)
# What is trained to measure one stage: the middle one of three, a layer, all on one rank.
SMALL_WIDTH, SMALL_HEADS, SMALL_LENGTH, SMALL_VOCABULARY, SMALL_MICROBATCHES, SMALL_STEPS = 512, 8, 512, 1024, 4, 13
SMALL_PLAN = f"""[model]
file = "small.pt"
[data]
kind = "synthetic"
samples = {SMALL_MICROBATCHES * SMALL_STEPS}
[data.fields]
tokens = "int64[{SMALL_LENGTH}] < {SMALL_VOCABULARY}"
targets = "int64[{SMALL_LENGTH}] < {SMALL_VOCABULARY}"
[pipeline]
num_stages = 1
virtual_chunks = 3
num_microbatches = {SMALL_MICROBATCHES}
split_method = "MANUAL"
split_points = ["blocks.0", "blocks.1"]
schedule_type = "CUSTOM"
schedule_file = "small.csv"
[train]
steps = {SMALL_STEPS}
global_batch_size = {SMALL_MICROBATCHES}
"""

PAGE = """# Planning past the machine

What `vpp inspect` says of published GPT shapes on up to 4096 ranks, from model files without weights
(`models/weightless.py`). `scripts/planning` made this page on a machine with neither the ranks nor the memory.

Assumed: layers, width and heads of Brown et al. 2020 (6.7B) and Korthikanti et al. 2022 (the others), sequences of
{sequence} tokens, a vocabulary of {vocabulary}; microbatches of one sequence; fp32 with AdamW; no tensor parallelism:
a rank holds whole layers. A device works at 150 TFLOP/s, forward as long as the input's and as the weights' gradient; a
message takes 0.01 ms and 25 GB/s. These are costs given in a `cost_file`; a second table below has measured ones.

The bubble is the idle share of a simulated step. Memory is that of the fullest rank: weights, gradients and optimizer
state without and with ZeRO-1 (`mesh.zero1`); activations, and what is left of them with
`pipeline.recompute.what = "units"`. Inspect is the time of the whole command.

A stage holds whole layers. Where they do not divide (96 into 64 stages, 105 into 70) some stages have one more than the
others, and the bubble is mostly that.

{table}

## With the costs of one measured stage

The same with times that were measured. `scripts/planning` trains three layers of width {width} on {length} tokens as
three stages on one rank, by a schedule that has `I` and `W` apart (`"CUSTOM"`), with `--profile 10`. Of the middle
stage, one layer, it takes the shortest action of each kind in `profile/trace-step*.json`: forward {forward:.1f} ms,
gradient of the input {input:.1f} ms, of the weights {weights:.1f} ms; here on one core of a shared CPU, {rate:.0f}
GFLOP/s in forward. Between runs on a machine that others use too the times differ by up to a fifth, and the bubbles by
about two points.

Assumed: each of the three grows with the layer's forward FLOPs. So a rank is as fast as that core, and a large layer
as efficient as the small one, which it is not on an accelerator; messages are those of above. The steps are long ones
of CPUs: what to look at is the bubble, which follows from the ratio of the three in place of 1 : 1 : 1. For your own
device measure a layer there, at its full width, and put its times into a `cost_file`.

{measured_table}
"""
MEASURED_COLUMNS = ("model", "pp x dp", "microbatches", "schedule", "bubble, costs given", "bubble, costs measured",
                    "step, costs measured")
COLUMNS = ("model", "parameters", "ranks", "pp x dp", "microbatches", "schedule", "bubble", "step", "weights and state",
           "with ZeRO-1", "activations", "recomputed", "inspect")


def layer_flops(t: int, d: int) -> float:
    """Forward, of a transformer layer over a sequence."""
    return 24 * t * d * d + 4 * t * t * d


def measure(vpp: pathlib.Path, folder: pathlib.Path) -> tuple[Rates, dict[str, float]]:
    """Trains a small GPT on one rank: the rates of its middle layer, and the milliseconds that they come from."""
    torch.jit.script(GPT(SMALL_VOCABULARY, SMALL_WIDTH, 3, SMALL_HEADS, SMALL_LENGTH)).save(str(folder / "small.pt"))
    actions = [action for m in range(SMALL_MICROBATCHES)
               for action in (f"0F{m}", f"1F{m}", f"2F{m}", f"2I{m}", f"2W{m}", f"1I{m}", f"1W{m}", f"0I{m}", f"0W{m}")]
    (folder / "small.csv").write_text(",".join(actions) + "\n")
    (folder / "small.toml").write_text(SMALL_PLAN)
    done = subprocess.run([vpp, "train", "small.toml", "--profile", "10"], cwd=folder, text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"planning: measuring: {done.stderr}")
    traces = [json.loads(path.read_text()) for path in (folder / "runs/small/profile").glob("trace-step*.json")]
    events = [event for trace in traces for event in trace["traceEvents"] if event.get("args", {}).get("stage") == 1]
    times = {kind: min(event["dur"] for event in events if event["cat"] == kind) / 1000 for kind in "FIW"}
    flops = layer_flops(SMALL_LENGTH, SMALL_WIDTH)
    return Rates(**{kind: ms / flops for kind, ms in times.items()}), times


def cost_file(shape: str, rates: Rates) -> dict:
    layers, d, _ = SHAPES[shape]
    flops = layer_flops(SEQUENCE_LENGTH, d)
    cost = {kind: flops * rate for kind, rate in dataclasses.asdict(rates).items()}
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


def schedule_text(layout: Layout) -> str:
    return layout.schedule + (f", {layout.chunks} a rank" if layout.chunks > 1 else "")


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
        schedule_text(layout),
        f"{100 * page['bubble']:.1f} %",
        f"{page['makespan'] / 1000:.1f} s",
        fullest(page, *state, "unshared_optimizer_bytes"),
        fullest(page, *state, "zero1_optimizer_bytes"),
        fullest(page, "activation_bytes"),
        fullest(recomputed, "activation_bytes"),
        f"{took_s:.1f} s",
    ]


def measured_rows(vpp: pathlib.Path, folder: pathlib.Path, rates: Rates) -> list[list[str]]:
    """Layouts of some shapes, with costs given and measured."""
    pages: dict[Layout, list[dict]] = {}
    fewest = {shape: min(layout.pp * layout.dp for layout in LAYOUTS if layout.shape == shape) for shape in SHAPES}
    chosen = [layout for layout in LAYOUTS
              if layout.shape in MEASURED_SHAPES and layout.pp * layout.dp == fewest[layout.shape]]
    for used in (GIVEN, rates):
        for layout in chosen:
            (folder / f"{layout.shape}.json").write_text(json.dumps(cost_file(layout.shape, used)))
            pages.setdefault(layout, []).append(inspect(vpp, folder, layout, "none"))
    return [[layout.shape, f"{layout.pp} x {layout.dp}", str(layout.microbatches), schedule_text(layout),
             f"{100 * given['bubble']:.1f} %", f"{100 * measured['bubble']:.1f} %",
             f"{measured['makespan'] / 3.6e6:.1f} h"] for layout, (given, measured) in pages.items()]


def table_text(columns: tuple[str, ...], rows: list[list[str]]) -> str:
    lines = [" | ".join(columns), " | ".join("---" for _ in columns), *map(" | ".join, rows)]
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vpp", type=lambda name: pathlib.Path(name).resolve(), required=True)
    parser.add_argument("page", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for shape in {layout.shape for layout in LAYOUTS}:
            subprocess.run([sys.executable, "-B", ROOT / "models/weightless.py", shape, "--out", folder], check=True)
            (folder / f"{shape}.json").write_text(json.dumps(cost_file(shape, GIVEN)))
        for layout in LAYOUTS:
            rows.append(row(arguments.vpp, folder, layout))
            print(" | ".join(rows[-1]), flush=True)
        rates, times = measure(arguments.vpp, folder)
        measured = measured_rows(arguments.vpp, folder, rates)
    arguments.page.write_text(PAGE.format(
        sequence=SEQUENCE_LENGTH, vocabulary=VOCABULARY, table=table_text(COLUMNS, rows),
        width=SMALL_WIDTH, length=SMALL_LENGTH, forward=times["F"], input=times["I"], weights=times["W"],
        rate=1 / rates.F / 1e6, measured_table=table_text(MEASURED_COLUMNS, measured)))


if __name__ == "__main__":
    main()
