"""How long `vpp inspect` takes for models of about 10,000 ops, and for a half of that: the ratio tells how it grows.

large_models.py VPP [--runs 3]     times are of the processor, so that other programs do not count much

A GPT of small layers, and a residual network whose BatchNorms write buffers, both scripted. The models are made in
a folder that is deleted.
"""

import argparse
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))

PLAN = """
[model]
file = "{file}"
{more}
[data]
kind = "synthetic"
samples = 64
[data.fields]
{fields}
[pipeline]
num_stages = 4
num_microbatches = 8
[train]
steps = 3
global_batch_size = 16
"""
TOKENS = 'tokens = "int64[16] < 256"\ntargets = "int64[16] < 256"'
IMAGES = 'image = "float32[1, 8, 8]"\nlabel = "int64[] < 10"'
LOSS = 'inputs = ["image"]\n[loss]\nkind = "cross_entropy"\ntarget = "label"'


def gpt(size: int):
    """25 ops a layer."""
    from gpt import GPT

    return GPT(d=16, layers=size * 4, heads=2, max_t=16)


def residual(size: int):
    """18 ops a block."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)
            self.bn = nn.BatchNorm2d(4)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.relu(self.bn(self.conv(x)))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Conv2d(1, 4, 3, padding=1)
            self.blocks = nn.ModuleList([Block() for _ in range(int(size * 5.5))])
            self.head = nn.Linear(4, 10)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.stem(image)
            for block in self.blocks:
                x = block(x)
            return self.head(x.mean((2, 3)))

    return Net()


MODELS = {"gpt": (gpt, TOKENS, ""), "residual": (residual, IMAGES, LOSS)}


def seconds(vpp: str, plan: pathlib.Path) -> tuple[float, str]:
    """Of the processor, the child that loads the model first included; and the line that counts the ops."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([vpp, "inspect", plan], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used, done.stdout.splitlines()[1].split(",")[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--size", type=int, default=100, help="about a hundredth of the ops of the larger model")
    arguments = parser.parse_args()
    import torch

    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind, (make, fields, more) in MODELS.items():
            best = []
            for size in (arguments.size // 2, arguments.size):
                torch.jit.script(make(size).train()).save(str(folder / "model.pt"))
                (folder / "plan.toml").write_text(PLAN.format(file="model.pt", more=more, fields=fields))
                runs = [seconds(arguments.vpp, folder / "plan.toml") for _ in range(arguments.runs)]
                best.append(min(used for used, _ in runs))
                print(f"{kind}: {runs[0][1]} in {best[-1]:.2f} s", flush=True)
            print(f"{kind}: twice the ops take {best[1] / best[0]:.2f} times as long", flush=True)


if __name__ == "__main__":
    main()
