"""vpp against the best peer and against the ideal: one table, also as JSON. tests/bench/README.md says how each figure
is taken.

bench.py VPP [--json FILE] [--rounds N] [--only LETTERS]     nothing else should run meanwhile
"""

import argparse
import pathlib
import sys
import tempfile
import time

import disk
import growth
import start
import steps
import table
import zero_bubble
from models import ROOT, SIZES, export
from sides import Vpp

GROUPS = ((steps, "abc"), (start, "de"), (growth, "fg"), (disk, "hi"), (zero_bubble, "j"))
LETTERS = "abcdefghij"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp", help="the program")
    parser.add_argument("--json", type=pathlib.Path, default=ROOT / "build" / "bench.json", help="where to write them")
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs of a figure")
    parser.add_argument("--only", default=LETTERS, help="letters of the figures to take")
    arguments = parser.parse_args()
    if arguments.rounds < 1 or not set(arguments.only) <= set(LETTERS):
        parser.error(f"--rounds is at least 1, --only takes letters of {LETTERS[0]} to {LETTERS[-1]}")
    about = {"machine": table.machine(), "rounds": arguments.rounds}
    figures, begin = [], time.monotonic()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=arguments.json.parent) as name:
        vpp = Vpp(arguments.vpp, pathlib.Path(name))
        for size in SIZES.values():
            export(size, vpp.folder)
        for module, letters in GROUPS:
            keys = "".join(sorted(set(letters) & set(arguments.only)))
            if not keys:
                continue
            for figure in module.measure(vpp, arguments.rounds, keys):
                if figure.key not in keys:
                    continue
                figures.append(figure)
                about["seconds"] = round(time.monotonic() - begin)
                print(f"{about['seconds']:5} s  {'  '.join(filter(None, figure.cells()))}", file=sys.stderr, flush=True)
                table.write_json(arguments.json, figures, about)
    figures.sort(key=lambda figure: figure.key)
    machine = about["machine"]
    print(f"{machine['cpu']}, {machine['cores']} cores, load {machine['load'][0]:.1f} at the beginning, "
          f"{about['seconds']} s, {arguments.rounds} rounds\n")
    print(table.text(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
