"""Figures (d) and (e): from launch to the first step, and the memory of a rank."""

from collections.abc import Iterator

from models import LARGE, SMALL, TINY, Size, plan
from sides import Peer, Run, Vpp
from table import Figure, compare, number, paired, target_where

RANKS = (1, 2)


def first_step(ranks: int, size: Size) -> tuple[float, int]:
    """Of the other side: seconds from the start of its processes, and the peak bytes of its largest rank."""
    with Peer(ranks) as peer:
        answers = peer.measure(size, "1F1B" if ranks > 1 else "eager", steps=1)
        return answers[0]["first_step_at"] - peer.begun, max(answer["peak_bytes"] for answer in answers)


def predicted(vpp: Vpp, text: str) -> int:
    """Bytes that the largest rank should hold at its fullest moment, less the copy for a save, since none is made."""
    return max(rank["total_bytes"] - rank["saved_copy_bytes"] for rank in vpp.inspect(text)["inspection"]["ranks"])


def measure(vpp: Vpp, rounds: int, keys: str) -> Iterator[Figure]:
    for ranks in RANKS:
        empty = plan(TINY, ranks, "1F1B", 1)
        for size in (SMALL, LARGE):
            text, peaks, empties = plan(size, ranks, "1F1B", 1, steps=size.warm_up + 1), [[], []], []
            runs: list[Run] = []

            def ours() -> float:
                if size is LARGE:
                    empties.append(vpp.train(empty, ranks).peak_bytes)
                runs.append(vpp.train(text, ranks))
                peaks[0].append(runs[-1].peak_bytes)
                return runs[-1].first_step_s

            def theirs() -> float:
                seconds, peak = first_step(ranks, size)
                peaks[1].append(peak)
                return seconds

            found = paired(rounds, ours, theirs)
            yield compare("d", "launch to first step", found, "s", model=size.name, ranks=ranks,
                          target=target_where(ranks, 0.35))
            sides = tuple([peak / 1e6 for peak in side] for side in peaks)
            yield compare("e", "peak memory over torch's", sides, "MB", model=size.name, ranks=ranks,
                          target=target_where(ranks, 1.0))
            if size is LARGE:
                theory = predicted(vpp, text) - predicted(vpp, empty)
                grown = [peak - least for peak, least in zip(peaks[0], empties, strict=True)]
                yield Figure("e", "memory over theory", [bytes_ / theory for bytes_ in grown], model=size.name,
                             ranks=ranks, ours=f"{number(grown[-1] / 1e6)} MB", theirs=f"{number(theory / 1e6)} MB",
                             target=target_where(ranks, 1.10))
