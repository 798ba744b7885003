"""Figures (f) and (g): throughput as a plan grows, and what one more action costs."""

import json
import statistics
from collections.abc import Iterator

from models import MICROBATCHES, SMALL, TINY, Size, plan
from sides import Vpp
from table import Figure, number, paired

STEPS, WARM_UP = 20, 5
# What grows, its values, and the plan: ranks, schedule, stages of a rank, microbatches, samples of a microbatch.
CURVES = (
    ("microbatches", (2, 4, 8, 16, 32), lambda n: (2, "1F1B", 1, n, 2)),
    ("ranks", (1, 2, 4), lambda n: (n, "1F1B", 1, MICROBATCHES, 2)),
    ("stages a rank", (1, 2, 4), lambda n: (2, "INTERLEAVED_1F1B" if n > 1 else "1F1B", n, MICROBATCHES, 2)),
    ("KB a message", (1, 2, 4, 8, 16), lambda n: (2, "1F1B", 1, MICROBATCHES, n)),
)


def step_ms(vpp: Vpp, size: Size, ranks: int, schedule: str, chunks: int, microbatches: int, samples: int) -> float:
    text = plan(size, ranks, schedule, chunks, microbatches, samples, STEPS)
    return vpp.train(text, ranks).step_ms(WARM_UP)


def curve(vpp: Vpp, what: str, values: tuple, make) -> Iterator[Figure]:
    """A row for each point: samples a second."""
    for value in values:
        ranks, schedule, chunks, microbatches, samples = make(value)
        milliseconds = step_ms(vpp, SMALL, ranks, schedule, chunks, microbatches, samples)
        shown = value * SMALL.t * SMALL.d * 4 // 1024 if what == "KB a message" else value
        yield Figure("f", f"samples/s, {shown} {what}", [1e3 * microbatches * samples / milliseconds],
                     model=SMALL.name, ranks=ranks, unit="/s", ours=f"{number(milliseconds)} ms")


def boundary_us(vpp: Vpp, rounds: int) -> Figure:
    """The tiny model in eight stages on one rank against one stage: the same ops, seven more F and B a microbatch. So
    the autograd passes of the further stages and the handing over of values and gradients are in it."""
    stages, microbatches, sides = 8, 32, ([], [])

    def measure(chunks: int) -> float:
        return step_ms(vpp, TINY, 1, "INTERLEAVED_1F1B" if chunks > 1 else "1F1B", chunks, microbatches, 1)

    sides = paired(rounds, lambda: measure(stages), lambda: measure(1))
    values = [1e3 * (cut - whole) / (2 * microbatches * (stages - 1)) for cut, whole in zip(*sides, strict=True)]
    return Figure("g", "one more F or B, all in", values, model=TINY.name, unit="us",
                  ours=f"{number(statistics.median(sides[0]))} ms", theirs=f"{number(statistics.median(sides[1]))} ms")


def gap_us(vpp: Vpp, rounds: int) -> Figure:
    """Between the end of an action and the beginning of the next, the median in a traced step of one rank."""
    values = []
    for _ in range(rounds):
        run = vpp.train(plan(SMALL, 1, "INTERLEAVED_1F1B", 8, steps=12), 1, "--profile", "8..10")
        actions = json.loads((run.folder / "profile" / "timeline.json").read_text())["actions"]
        actions.sort(key=lambda action: action["begin_ms"])
        values.append(statistics.median(1e3 * (later["begin_ms"] - sooner["end_ms"])
                                        for sooner, later in zip(actions, actions[1:])))
    return Figure("g", "between two actions", values, model=SMALL.name, unit="us", target=10)


def measure(vpp: Vpp, rounds: int, keys: str) -> Iterator[Figure]:
    if "f" in keys:
        for row in CURVES:
            yield from curve(vpp, *row)
    if "g" in keys:
        yield gap_us(vpp, rounds)
        yield boundary_us(vpp, 2 * rounds + 1)
