"""What reading ahead is worth: steps of one rank with data that take a while to read, with it and without.

read_ahead.py VPP FAULTS [--rounds N]   prints milliseconds of a step (medians) and their ratio

FAULTS is libvpp_faults.so of the build, which makes each read of the file wait. "at best" is the longer one of reading
and computing alone, the most that overlap can give.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch

PLAN = """
[model]
file = "model.pt"
inputs = ["x"]
[data]
kind = "arrays"
shuffle = false
[data.train]
x = "slow.npy"
[pipeline]
schedule_type = "GPIPE"
num_microbatches = 8
[train]
steps = 12
global_batch_size = 32
[optimizer]
kind = "sgd"
lr = 1e-6
"""
MICROBATCHES, SAMPLES = 8, 32


class Wide(torch.nn.Module):
    """A loss that takes some milliseconds a microbatch to compute."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(768, 768) for _ in range(12)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x.flatten(1)).square().mean()


def step_ms(arguments, folder: pathlib.Path, run: str, delay_ms: int, ahead_bytes: int) -> tuple[float, float]:
    """A step, and what its microbatches were read for: the medians of ten."""
    fault = {"LD_PRELOAD": arguments.faults, "VPP_DISK_FAULT": f"-1 pread slow.npy 1 1000000000 0 {delay_ms}"}
    subprocess.run([arguments.vpp, "train", "plan.toml", "--set", f"run.dir={run}", "--set",
                    f"data.read_ahead_bytes={ahead_bytes}", "--profile", "3..12"],
                   cwd=folder, check=True, capture_output=True, env=os.environ | fault)
    lines = [json.loads(line) for line in (folder / run / "metrics.jsonl").read_text().splitlines()]
    reads = []
    for path in (folder / run / "profile").glob("trace-*.json"):
        events = json.loads(path.read_text())["traceEvents"]
        reads += [event["dur"] / 1e3 for event in events if event.get("cat") == "read" and event["ts"] > 0]
    steps = [line["step_ms"] for line in lines if line["event"] == "step" and line["step"] > 2]
    return statistics.median(steps), MICROBATCHES * statistics.median(reads)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp")
    parser.add_argument("faults")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.vpp, arguments.faults = (str(pathlib.Path(path).resolve()) for path in (arguments.vpp, arguments.faults))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        numpy.save(folder / "slow.npy", numpy.random.default_rng(1).random((SAMPLES * 16, 768), numpy.float32))
        torch.jit.script(Wide()).save(str(folder / "model.pt"))
        (folder / "plan.toml").write_text(PLAN)
        print("| a sample's read waits, ms | reading, ms | when needed | ahead | at best | times faster |")
        print("|---:|---:|---:|---:|---:|---:|")
        computing = None
        for delay_ms in (0, 1, 2, 4):
            rounds = [[step_ms(arguments, folder, f"run-{delay_ms}-{number}-{ahead}", delay_ms, ahead)
                       for ahead in (0, 64 << 20)] for number in range(arguments.rounds)]
            needed, ahead = (statistics.median(pair[i][0] for pair in rounds) for i in (0, 1))
            reading = statistics.median(pair[0][1] for pair in rounds)
            computing = computing or needed - reading
            best = max(computing, reading)
            print(f"| {delay_ms} | {reading:.1f} | {needed:.1f} | {ahead:.1f} | {best:.1f} | {needed / ahead:.2f} |",
                  flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
