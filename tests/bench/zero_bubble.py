"""Figure (j): whether schedules that divide backward are as much faster than 1F1B as measured costs say."""

from collections.abc import Iterator

from models import LARGE, SMALL, Size, plan
from sides import Vpp
from table import Figure, compare, target_where

RANKS = 2
BASE = "1F1B"
# Stages of a rank.
SCHEDULES = {BASE: 1, "ZERO_BUBBLE_H1": 1, "ZERO_BUBBLE_H2": 1, "INTERLEAVED_ZERO_BUBBLE": 2, "ZERO_BUBBLE_V": 2,
             "DUALPIPE_V": 2}
# Where the simulator with measured costs promises less, noise decides, and no target is set.
PROMISE = 0.97
# What is promised is a few percent, less than a busy neighbour takes from one of the cores for some seconds.
MORE_ROUNDS = 2


def predicted_makespans(vpp: Vpp, texts: dict[str, str]) -> dict[str, float]:
    """Of the actions of a step, by costs that are measured once: they are those of the model's parts."""
    vpp.profile(texts[BASE], RANKS, "costs.json")
    return {name: vpp.inspect(text, "--set", "pipeline.cost_file=costs.json")["inspection"]["makespan"]
            for name, text in texts.items()}


def over_undivided(vpp: Vpp, size: Size, rounds: int) -> Iterator[Figure]:
    texts = {name: plan(size, RANKS, name, chunks) for name, chunks in SCHEDULES.items()}
    makespans = predicted_makespans(vpp, texts)
    steps: dict[str, list[float]] = {name: [] for name in texts}
    for i in range(rounds + MORE_ROUNDS):
        for name in list(texts) if i % 2 == 0 else reversed(texts):
            steps[name].append(vpp.train(texts[name], RANKS).step_ms(size.warm_up))
    for name in texts:
        if name == BASE:
            continue
        promised = makespans[name] / makespans[BASE]
        yield compare("j", f"{name} over {BASE}: {promised:.2f} predicted", (steps[name], steps[BASE]), "ms",
                      model=size.name, ranks=RANKS,
                      target=target_where(RANKS, 1.0) if promised < PROMISE else None)


def measure(vpp: Vpp, rounds: int, _: str) -> Iterator[Figure]:
    for size in (SMALL, LARGE):
        yield from over_undivided(vpp, size, rounds)
