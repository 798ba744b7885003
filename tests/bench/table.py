"""Figures with their spread and their targets: one table, and the same as JSON."""

import dataclasses
import json
import os
import pathlib
import platform
import statistics

HEADS = ("", "figure", "model", "ranks", "vpp", "other", "median", "from", "to", "target", "")


@dataclasses.dataclass
class Figure:
    """One row: what was measured in each round. Where both sides are known, a value is vpp's over the other's."""

    key: str  # letter of the figure
    what: str
    values: list[float]
    model: str = ""
    ranks: int = 1
    unit: str = "x"
    ours: str = ""  # the medians of the two sides, as people read them
    theirs: str = ""
    target: float | None = None  # the most, or with at_least the least, that the median may be
    at_least: bool = False

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool | None:
        if self.target is None:
            return None
        return self.median >= self.target if self.at_least else self.median <= self.target

    def verdict(self) -> str:
        if self.is_met is None:
            return ""
        return "ok" if self.is_met else f"missed by {abs(self.median / self.target - 1):.0%}"

    def cells(self) -> list[str]:
        target = "" if self.target is None else f"{'>=' if self.at_least else '<='} {self.target:g}"
        return [self.key, self.what, self.model, str(self.ranks), self.ours, self.theirs,
                f"{number(self.median)} {self.unit}", number(min(self.values)), number(max(self.values)), target,
                self.verdict()]

    def json(self) -> dict:
        return dataclasses.asdict(self) | {"median": self.median, "met": self.is_met}


def number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"


def target_where(ranks: int, target: float) -> float | None:
    """Ranks that share cores are shown without a target."""
    return target if ranks <= os.cpu_count() else None


def paired(rounds: int, ours, theirs) -> tuple[list[float], list[float]]:
    """What both functions returned in each round. They take turns, and who goes first changes, so that a machine whose
    speed drifts slows both."""
    found: tuple[list[float], list[float]] = ([], [])
    for i in range(rounds):
        for side, measure in ((0, ours), (1, theirs)) if i % 2 == 0 else ((1, theirs), (0, ours)):
            found[side].append(measure())
    return found


def compare(key: str, what: str, found: tuple[list[float], list[float]], unit: str, **more) -> Figure:
    """The ratio is formed within a round."""
    ratios = [ours / theirs for ours, theirs in zip(*found, strict=True)]
    sides = [f"{number(statistics.median(side))} {unit}" for side in found]
    return Figure(key, what, ratios, ours=sides[0], theirs=sides[1], **more)


def text(figures: list[Figure]) -> str:
    rows = [HEADS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    lines = ["  ".join(cell.ljust(width) if i in (0, 1, 2, 10) else cell.rjust(width)
                       for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
    return "\n".join(lines)


def machine() -> dict:
    model = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"cores": os.cpu_count(), "cpu": model[0] if model else platform.machine(),
            "load": list(os.getloadavg())}


def write_json(path: pathlib.Path, figures: list[Figure], about: dict) -> None:
    path.write_text(json.dumps(about | {"figures": [figure.json() for figure in figures]}, indent=1) + "\n")
