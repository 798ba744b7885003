"""How fast a rank reads each kind of data: shuffled samples of files that the system has in memory, as a training of a
model that does nothing else reads them, by the "reading data" lane of its traces.

data_rates.py VPP [--megabytes N] [--batch N]   prints samples/s and MB/s of what the model gets, the median step
"""

import argparse
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

import numpy
import torch

PLAN = """
[model]
file = "{model}.pt"
inputs = ["{field}"]
[data]
{data}
[pipeline]
num_microbatches = 4
[train]
steps = 12
global_batch_size = {batch}
[optimizer]
kind = "sgd"
[run]
dir = "{folder}/run-{name}"
"""
TRANSFORM = '[[data.transform]]\nfield = "x"\ncrop = [32, 32]\npad = 4\nflip = 0.5\nscale = 0.00392156862745098\n'


class First(torch.nn.Module):
    """A loss that takes nothing to compute."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten()[:1].float().mean() * self.one.sum()


def make_files(folder: pathlib.Path, size: int) -> dict[str, tuple[str, str]]:
    """Of each kind the field that is read, and the lines of the plan behind [data]."""
    random = numpy.random.default_rng(1)
    noise = random.integers(0, 256, size, dtype=numpy.uint8)
    noise.tofile(folder / "text")
    (noise[:size // 2 * 2].view(numpy.uint16)).tofile(folder / "gpt2.bin")
    pictures = noise[:size // 3072 * 3072].reshape(-1, 3, 32, 32)
    numpy.save(folder / "bytes.npy", pictures)
    numpy.save(folder / "floats.npy", pictures[:len(pictures) // 4].astype(numpy.float32))
    numpy.savez(folder / "floats.npz", x=pictures[:len(pictures) // 4].astype(numpy.float32))
    digits = noise[:size // 784 * 784].reshape(-1, 28, 28)
    (folder / "digits").write_bytes(struct.pack(">BBBB3I", 0, 0, 8, 3, *digits.shape) + digits.tobytes())
    records = noise[:size // 3073 * 3073].reshape(-1, 3073).copy()
    records[:, 0] %= 10
    records.tofile(folder / "cifar.bin")
    lengths = random.integers(100, 3000, size // 3200).astype(numpy.int32)
    begins = numpy.concatenate([[0], numpy.cumsum(lengths[:-1], dtype=numpy.int64)])
    noise[:lengths.sum()].tofile(folder / "documents.bin")
    (folder / "documents.idx").write_bytes(
        b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 1, len(lengths), len(lengths) + 1) + lengths.tobytes()
        + begins.astype(numpy.int64).tobytes() + numpy.arange(len(lengths) + 1, dtype=numpy.int64).tobytes())
    rows = '"{}"\n[data.train]\nx = "' + str(folder) + '/{}"\n'
    runs = '"{}"\ntrain = ["' + str(folder) + '/{}"]\n'
    return {
        "text, 1024": ("tokens", runs.format("text", "text") + "sequence_length = 1024"),
        "tokens, 1024": ("tokens", runs.format("tokens", "gpt2.bin") + "sequence_length = 1024"),
        "documents apart, 1024": ("tokens", runs.format("tokens", "documents.bin")
                                  + 'sequence_length = 1024\ndocuments = "apart"'),
        "npy, float32": ("x", rows.format("arrays", "floats.npy")),
        "npz, float32": ("x", rows.format("arrays", "floats.npz")),
        "npy, uint8": ("x", rows.format("arrays", "bytes.npy")),
        "npy, crop and flip": ("x", rows.format("arrays", "bytes.npy") + TRANSFORM),
        "idx": ("x", rows.format("idx", "digits")),
        "cifar10": ("image", runs.format("cifar10", "cifar.bin")),
        "synthetic": ("x", '"synthetic"\nsamples = 10000\nfields = { x = "float32[3, 32, 32]" }'),
    }


def sample_bytes(field: str, name: str) -> int:
    if "1024" in name:
        return 1024 * 8
    if name == "idx":
        return 784 * 4
    return 3072 * (1 if name == "npy, uint8" else 4)


def load_seconds(vpp: str, plan: pathlib.Path, run: pathlib.Path) -> float:
    """What a step of the training reads for, the median of ten."""
    subprocess.run([vpp, "train", str(plan), "--profile", "3..12"], check=True, capture_output=True)
    steps = []
    for path in (run / "profile").glob("trace-*.json"):
        events = json.loads(path.read_text())["traceEvents"]
        steps.append(sum(event["dur"] for event in events if event.get("cat") == "read") / 1e6)
    return statistics.median(steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp")
    parser.add_argument("--megabytes", type=int, default=64, help="size of each file")
    parser.add_argument("--batch", type=int, default=512, help="samples of a step")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print("| data | samples/s | MB/s |\n|---|---:|---:|")
        for number, (kind, (field, data)) in enumerate(make_files(folder, arguments.megabytes << 20).items()):
            torch.jit.script(First()).save(str(folder / f"{number}.pt"))
            plan = folder / f"{number}.toml"
            plan.write_text(PLAN.format(model=folder / str(number), field=field, data="kind = " + data,
                                        batch=arguments.batch, folder=folder, name=number))
            seconds = load_seconds(arguments.vpp, plan, folder / f"run-{number}")
            rate = arguments.batch / seconds
            print(f"| {kind} | {rate:,.0f} | {rate * sample_bytes(field, kind) / 1e6:,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
