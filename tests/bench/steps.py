"""Figures (a), (b) and (c): a step against eager Python, against torch.distributed.pipelining, against the ideal."""

from collections.abc import Iterator

from models import LARGE, SCHEDULES, SMALL, Size, plan
from sides import Peer, Run, Vpp
from table import Figure, compare, number, paired, target_where

TARGETS = {"a": {SMALL: 0.95, LARGE: 1.00}, "b": {SMALL: 0.80, LARGE: 0.95}, "c": 1.05}


def over_eager(vpp: Vpp, rounds: int) -> Iterator[Figure]:
    with Peer(1) as peer:
        peer.wait_until_ready()
        for size in (SMALL, LARGE):
            text = plan(size, 1, "1F1B", 1)
            found = paired(rounds, lambda: vpp.train(text, 1).step_ms(size.warm_up),
                           lambda: peer.step_ms(size, "eager"))
            yield compare("a", "step over eager Python", found, "ms", model=size.name, target=TARGETS["a"][size])


def ideal_ratio(run: Run) -> float:
    """From the first action of a step to its last one, over the same simulated with the mean times of F, B, I and W of
    this run, without messages."""
    event = run.of_kind("pipeline")[-1]
    return event["actions_ms"] / event["predicted_ms"]


def over_pipelining(vpp: Vpp, ranks: int, size: Size, rounds: int) -> Iterator[Figure]:
    """Rows of (b), and from the same runs of vpp those of (c)."""
    with Peer(ranks) as peer:
        peer.wait_until_ready()
        for name, _, chunks, _ in SCHEDULES:
            text, runs = plan(size, ranks, name, chunks), []

            def ours() -> float:
                runs.append(vpp.train(text, ranks))
                return runs[-1].step_ms(size.warm_up)

            found = paired(rounds, ours, lambda: peer.step_ms(size, name))
            yield compare("b", f"{name} over torch's", found, "ms", model=size.name, ranks=ranks,
                          target=target_where(ranks, TARGETS["b"][size]))
            event = runs[-1].of_kind("pipeline")[-1]
            yield Figure("c", f"{name} over its ideal", [ideal_ratio(run) for run in runs], model=size.name,
                         ranks=ranks, ours=f"{number(event['actions_ms'])} ms",
                         theirs=f"{number(event['predicted_ms'])} ms",
                         target=target_where(ranks, TARGETS["c"]))


def measure(vpp: Vpp, rounds: int, keys: str) -> Iterator[Figure]:
    if "a" in keys:
        yield from over_eager(vpp, rounds)
    if "b" in keys or "c" in keys:
        for size in (SMALL, LARGE):
            yield from over_pipelining(vpp, 2, size, rounds)
            # Without a target fewer pairs are enough.
            yield from over_pipelining(vpp, 4, size, rounds if target_where(4, 1) else max(1, rounds // 2))
