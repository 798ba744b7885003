"""What cuts by measured times bring where a model is uneven: a heavy head, a heavy embedding, and a CNN whose early
stages are slow. split_method and schedule_type AUTO against UNIFORM and 1F1B on two ranks, in pairs of runs that take
turns on the same machine.

uneven_models.py VPP [--pairs N] [--steps N]   prints the cuts, and AUTO's time of a step over UNIFORM's with its spread
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMP_NUM_THREADS": "1"}
SETTLING_STEPS = 4


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class HeavyHead(nn.Module):
    """tokens, target [n, 64] -> cross-entropy over many words."""

    def __init__(self, words: int = 4096, d: int = 128, layers: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, d)
        self.blocks = nn.Sequential(*[Block(d) for _ in range(layers)])
        self.head = nn.Linear(d, words)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.blocks(self.embedding(tokens))).flatten(0, 1), target.flatten())


class HeavyEmbedding(nn.Module):
    """tokens [n, 64], target [n] -> cross-entropy over few classes; the table's gradient is as large as the
    table."""

    def __init__(self, words: int = 40000, d: int = 128, layers: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, d)
        self.blocks = nn.Sequential(*[Block(d) for _ in range(layers)])
        self.head = nn.Linear(d, 16)

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.blocks(self.embedding(tokens)).mean(1)), target)


class ConvBlock(nn.Module):
    def __init__(self, channels: int, shrink: bool) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.pool = nn.MaxPool2d(2) if shrink else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(torch.relu(self.norm(self.conv(x))))


class SlowStart(nn.Module):
    """image [n, 3, 48, 48], target [n] -> cross-entropy: the picture shrinks, so most work is in the first blocks."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.Sequential(*[ConvBlock(channels, i in (3, 5)) for i in range(8)])
        self.head = nn.Linear(channels, 16)

    def forward(self, image: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.blocks(self.stem(image)).mean([2, 3])), target)


TOKENS = 'tokens = "int64[64] < {words}"\n'
MODELS = {
    "heavy head": (HeavyHead, TOKENS.format(words=4096) + 'target = "int64[64] < 4096"\n'),
    "heavy embedding": (HeavyEmbedding, TOKENS.format(words=40000) + 'target = "int64[] < 16"\n'),
    "slow start": (SlowStart, 'image = "float32[3,48,48]"\ntarget = "int64[] < 16"\n'),
}

PLAN = """[model]
file = "model.pt"
[data]
kind = "synthetic"
samples = 256
[data.fields]
{fields}[mesh]
pp = 2
device = "cpu"
[pipeline]
num_microbatches = 8
smallest_unsplittable_units = ["Block", "ConvBlock"]
[optimizer]
kind = "sgd"
lr = 0.001
[train]
steps = {steps}
global_batch_size = 32
[checkpoint]
every = 0
resume = "no"
"""

SETTINGS = {
    "UNIFORM, 1F1B": {"split_method": "UNIFORM", "schedule_type": "1F1B"},
    "AUTO, AUTO": {"split_method": "AUTO", "schedule_type": "AUTO"},
}


class Bench:
    def __init__(self, vpp: str, folder: pathlib.Path) -> None:
        self.vpp, self.folder = vpp, folder

    def train(self, settings: dict[str, str], run: str, **more: str) -> float:
        """The usual time of a step, in ms: the lower quartile, since what else the machine does only adds."""
        all_settings = {f"pipeline.{key}": value for key, value in settings.items()} | more | {"run.dir": run}
        options = [word for key, value in all_settings.items() for word in ("--set", f"{key}={value}")]
        command = ["mpirun", "-q", "--oversubscribe", "-np", "2", self.vpp, "train", "plan.toml", *options]
        done = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, text=True, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(done.stderr)
        lines = (self.folder / run / "metrics.jsonl").read_text().splitlines()
        times = [event["step_ms"] for event in map(json.loads, lines) if event["event"] == "step"]
        settled = sorted(times[SETTLING_STEPS:] or times)
        return settled[len(settled) // 4]

    def layout(self, settings: dict[str, str]) -> str:
        """Where it cuts, and the time that the costs predict."""
        options = [word for key, value in settings.items() for word in ("--set", f"pipeline.{key}={value}")]
        done = subprocess.run([self.vpp, "inspect", "plan.toml", "--json", *options], cwd=self.folder, env=ENVIRONMENT,
                              text=True, capture_output=True, check=True)
        page = json.loads(done.stdout)["inspection"]
        stages = " | ".join(f"{stage['modules']} {100 * stage['time_share']:.0f} %" for stage in page["stages"])
        return f"{stages}; predicted {page['makespan']:.1f} {page['cost_unit']}"


def compare(bench: Bench, name: str, pairs: int) -> None:
    bench.train(SETTINGS["AUTO, AUTO"], "measured", **{"train.steps": "1"})
    costs = {"cost_file": "measured/costs.json"}
    times: dict[str, list[float]] = {label: [] for label in SETTINGS}
    print(name)
    for label, settings in SETTINGS.items():
        print(f"  {label}: {bench.layout(settings | costs)}")
    for pair in range(pairs):
        # Who begins changes from pair to pair.
        for label in list(SETTINGS)[::1 if pair % 2 == 0 else -1]:
            times[label].append(bench.train(SETTINGS[label] | costs, f"run-{pair}-{label[:4]}"))
    uniform, auto = times.values()
    ratios = [ours / theirs for ours, theirs in zip(auto, uniform, strict=True)]
    print(f"  step {statistics.median(auto):.1f} ms over {statistics.median(uniform):.1f} ms: "
          f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f} in {pairs} pairs)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp", type=os.path.abspath, help="the program")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    for name, (model, fields) in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(1234)
            torch.jit.script(model()).save(f"{folder}/model.pt")
            pathlib.Path(folder, "plan.toml").write_text(PLAN.format(fields=fields, steps=arguments.steps))
            compare(Bench(arguments.vpp, pathlib.Path(folder)), name, arguments.pairs)


if __name__ == "__main__":
    main()
