"""The two models of the benchmarks, as a plan for vpp and as stages for torch.distributed.pipelining.

Both sides run models/gpt.py: the small one takes microseconds an op, so that it shows overhead; the large one computes
matrix products. Shapes: n samples, t tokens, d width.
"""

import dataclasses
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))

# Name in vpp, class of the wheel, stages of a rank, placement of the stages.
SCHEDULES = (
    ("GPIPE", "ScheduleGPipe", 1, "loop"),
    ("1F1B", "Schedule1F1B", 1, "loop"),
    ("INTERLEAVED_1F1B", "ScheduleInterleaved1F1B", 2, "loop"),
    ("LOOPED_BFS", "ScheduleLoopedBFS", 2, "loop"),
    ("INTERLEAVED_ZERO_BUBBLE", "ScheduleInterleavedZeroBubble", 2, "loop"),
    ("ZERO_BUBBLE_V", "ScheduleZBVZeroBubble", 2, "v"),
    ("DUALPIPE_V", "ScheduleDualPipeV", 2, "v"),
)


@dataclasses.dataclass(frozen=True)
class Size:
    name: str
    d: int
    heads: int
    t: int
    samples: int  # of a microbatch
    warm_up: int  # steps that are not counted
    steps: int  # steps that are
    layers: int = 8

    @property
    def gpt(self) -> dict:
        return {"d": self.d, "layers": self.layers, "heads": self.heads, "max_t": self.t}


SMALL = Size("small", d=64, heads=4, t=32, samples=2, warm_up=4, steps=15)
LARGE = Size("large", d=512, heads=8, t=64, samples=1, warm_up=1, steps=3)
# Of no weight: what a process takes anyway.
TINY = Size("tiny", d=8, heads=1, t=8, samples=1, warm_up=1, steps=2)
SIZES = {size.name: size for size in (SMALL, LARGE, TINY)}
MICROBATCHES = 8


def export(size: Size, folder: pathlib.Path) -> None:
    """Writes folder/<name>.pt, which plan() names."""
    import torch
    from gpt import GPT

    torch.manual_seed(1234)
    torch.jit.script(GPT(**size.gpt).train()).save(str(folder / f"{size.name}.pt"))


def plan(size: Size, ranks: int, schedule: str, chunks: int, microbatches: int = MICROBATCHES, samples: int = 0,
         steps: int = 0, checkpoint: str = 'resume = "no"\nevery = 0') -> str:
    """A plan of warm-up and counted steps; it cuts where the other side does."""
    stages = ranks * chunks
    points = [f"blocks.{(i + 1) * size.layers // stages - 1}" for i in range(stages - 1)]
    return f"""
[model]
file = "{size.name}.pt"
[data]
kind = "synthetic"
samples = 65536
[data.fields]
tokens = "int64[{size.t}] < 256"
targets = "int64[{size.t}] < 256"
[pipeline]
num_stages = {ranks}
virtual_chunks = {chunks}
split_method = "MANUAL"
split_points = {str(points).replace("'", '"')}
schedule_type = "{schedule}"
num_microbatches = {microbatches}
[optimizer]
kind = "adamw"
lr = 1e-3
[train]
steps = {steps or size.warm_up + size.steps}
global_batch_size = {microbatches * (samples or size.samples)}
[checkpoint]
{checkpoint}
[report]
every = 1
"""


def stage_module(size: Size, stage: int, stages: int):
    """The blocks of a stage, with the embeddings in the first and the head in the last; the loss is not in it."""
    import torch
    from gpt import GPT
    from torch import nn

    class Stage(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            model = GPT(**(size.gpt | {"layers": size.layers // stages}))
            self.first, self.last = stage == 0, stage == stages - 1
            if self.first:
                self.token_embedding, self.position_embedding = model.token_embedding, model.position_embedding
            self.blocks = model.blocks
            if self.last:
                self.ln_out, self.head = model.ln_out, model.head

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.first:
                x = self.token_embedding(x) + self.position_embedding(torch.arange(x.size(1)))
            for block in self.blocks:
                x = block(x)
            return self.head(self.ln_out(x)) if self.last else x

    return Stage().train()
