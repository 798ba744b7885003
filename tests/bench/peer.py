"""One rank of the other side: torch.distributed.pipelining over Gloo, or the eager model of one process.

peer.py --rank R --world P --port N     reads a line of JSON for each measurement from stdin: {"size": "small",
"schedule": "1F1B", "microbatches": 8, "warm_up": 5, "steps": 20}, and answers with a line on stdout. "eager" is a
schedule of one process. All ranks wait without computing between the lines, so that the sides can take turns.

What is fair about it: the same model, cuts, microbatches, optimizer (AdamW, fused) and dtype as vpp's plan; one compute
thread a rank; the batch lies in memory before the clock starts, where vpp reads it; no clipping (vpp forms the norm of
the gradients all the same, for its log); the losses of a step are read once a step, as vpp does. The first steps, in
which the stages tell each other their shapes, are not counted. Its ranks are started without torchrun, which would
only cost it time.
"""

import argparse
import json
import resource
import statistics
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--world", type=int, default=1)
parser.add_argument("--port", type=int, default=29511)
arguments = parser.parse_args()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from models import SCHEDULES, SIZES, stage_module  # noqa: E402 (and the path of gpt)
from torch.distributed import pipelining  # noqa: E402

from gpt import GPT  # noqa: E402 isort: skip


class QuietStage(pipelining.PipelineStage):
    """Opens no channel ahead of the first message: with two stages in a row on one rank, as V placements have them, the
    wheel would send to itself, which Gloo refuses."""

    def _get_init_p2p_neighbors_ops(self) -> list:
        return []


def loss_of(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def optimizer_of(modules: list[torch.nn.Module]) -> torch.optim.Optimizer:
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.0, fused=True)


def batch_of(asked: dict) -> tuple[torch.Tensor, torch.Tensor]:
    size = SIZES[asked["size"]]
    shape = (asked["microbatches"] * size.samples, size.t)
    return torch.randint(0, 256, shape), torch.randint(0, 256, shape)


def eager(asked: dict):
    """A function that does a step of the model in one process."""
    model, count = GPT(**SIZES[asked["size"]].gpt).train(), asked["microbatches"]
    optimizer, (tokens, targets) = optimizer_of([model]), batch_of(asked)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        for x, y in zip(tokens.chunk(count), targets.chunk(count), strict=True):
            loss = model(x, y)
            (loss * (1 / count)).backward()
            loss.item()
        optimizer.step()

    return step


def pipelined(asked: dict):
    """A function that does a step of this rank's stages."""
    size, rank, world = SIZES[asked["size"]], arguments.rank, arguments.world
    _, name, chunks, placement = next(row for row in SCHEDULES if row[0] == asked["schedule"])
    count = chunks * world
    mine = [rank, count - 1 - rank] if placement == "v" else list(range(rank, count, world))
    modules = [stage_module(size, stage, count) for stage in mine]
    stages = [QuietStage(module, stage, count, torch.device("cpu"))
              for module, stage in zip(modules, mine, strict=True)]
    kind = getattr(pipelining.schedules, name)
    schedule = kind(stages if chunks > 1 else stages[0], asked["microbatches"], loss_fn=loss_of)
    optimizer, (tokens, targets) = optimizer_of(modules), batch_of(asked)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        inputs = (tokens,) if 0 in mine else ()
        if count - 1 in mine:
            losses: list[torch.Tensor] = []
            schedule.step(*inputs, target=targets, losses=losses)
            torch.stack(losses).tolist()
        else:
            schedule.step(*inputs)
        optimizer.step()

    return step


def measure(asked: dict) -> dict:
    step = eager(asked) if asked["schedule"] == "eager" else pipelined(asked)
    times, first = [], 0.0
    for number in range(asked["warm_up"] + asked["steps"]):
        begin = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begin))
        first = first or time.time()
    return {"step_ms": statistics.median(times[asked["warm_up"]:]), "first_step_at": first,
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(1234)
    if arguments.world > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{arguments.port}", rank=arguments.rank,
                                world_size=arguments.world)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)
    if arguments.world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
