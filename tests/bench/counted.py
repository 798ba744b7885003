"""Counts what a step and the making of schedules take, and compares it with the last landed figures. Nothing is timed,
so that a busy machine does not matter.

counted.py [--write | --self-test]     in the environment that CTest sets: VPP_BINARY, VPP_MPIRUN, VPP_COUNTERS (the
library of tests/support/counters.cpp), VPP_SCHEDULE_WORK (the program of schedule_work.cpp)

actions      of all ranks in a step that was executed
messages     of 1 KiB and more that all ranks send in a step; bytes: what is in them
allocations  of the main thread in a step, on one rank: with several, how often one that waits looks is chance
instructions of making, lowering, checking and simulating six schedules, counted by callgrind

More than the tolerance above tests/bench/landed.json fails. What is meant is landed by --write and a commit.
--self-test shows that a figure that has grown is found.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LANDED = pathlib.Path(__file__).resolve().parent / "landed.json"
# Of allocations and instructions: other versions of the libraries and the compiler need a few more or less.
TOLERANCE = {"actions": 0.0, "messages": 0.0, "bytes": 0.0, "allocations": 0.02, "instructions": 0.02}
# The difference of two runs is what steps take, without the beginning and the end; both numbers have as many digits.
STEPS = (10, 20)
PLANS = (("1F1B", 1, 1), ("INTERLEAVED_1F1B", 1, 4), ("1F1B", 2, 1), ("INTERLEAVED_1F1B", 2, 2),
         ("ZERO_BUBBLE_H1", 2, 1))
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMP_NUM_THREADS": "1"}


def run(folder: pathlib.Path, schedule: str, ranks: int, chunks: int, steps: int) -> tuple[list[dict], int]:
    """The counts of the ranks, and the actions of a step."""
    settings = {"pipeline.num_stages": ranks, "pipeline.virtual_chunks": chunks, "pipeline.schedule_type": schedule,
                "train.steps": steps, "train.eval_every": 0, "lr_schedule.kind": "constant",
                "lr_schedule.warmup_steps": 0, "checkpoint.resume": "no", "checkpoint.every": 0, "run.dir": "run"}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    shutil.rmtree(folder / "run", ignore_errors=True)
    command = [os.environ["VPP_MPIRUN"], "-q", "--oversubscribe", "-np", str(ranks), "-x",
               f"LD_PRELOAD={os.environ['VPP_COUNTERS']}", "-x", f"VPP_COUNTERS={folder}/counts",
               os.environ["VPP_BINARY"], "train", "plan.toml", "--profile", "3", *words]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    counts = [json.loads((folder / f"counts.{rank}").read_text()) for rank in range(ranks)]
    return counts, len(json.loads((folder / "run/profile/timeline.json").read_text())["actions"])


def count_steps(folder: pathlib.Path) -> dict:
    subprocess.run([os.environ["VPP_BINARY"], "init", "gpt-tiny"], cwd=folder, check=True, capture_output=True)
    folder /= "gpt-tiny"
    found = {}
    for schedule, ranks, chunks in PLANS:
        (few, actions), (many, _) = (run(folder, schedule, ranks, chunks, steps) for steps in STEPS)

        def per_step(name: str) -> float:
            grown = sum(more[name] - less[name] for more, less in zip(many, few, strict=True))
            return grown / (STEPS[1] - STEPS[0])

        row = found[f"{schedule}, ranks {ranks}, stages a rank {chunks}"] = {"actions": actions}
        if ranks == 1:
            row["allocations"] = round(per_step("allocations"))
        else:
            row |= {"messages": round(per_step("messages")), "bytes": round(per_step("message_bytes"))}
    return found


def count_instructions(folder: pathlib.Path) -> int:
    done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/callgrind",
                           os.environ["VPP_SCHEDULE_WORK"]], check=True, capture_output=True, text=True, timeout=300)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def problems_of(found: dict, landed: dict) -> list[str]:
    """A line for each figure that is above the landed one."""
    problems = []
    for plan, row in found.items():
        for name, now in row.items():
            was = landed.get(plan, {}).get(name)
            if was is None:
                problems.append(f"{plan}: {name}: is {now:,.10g}, has not landed")
            elif now > was * (1 + TOLERANCE[name]) or (TOLERANCE[name] == 0 and now != was):
                grown = f", {now / was - 1:+.1%}" if was else ""
                problems.append(f"{plan}: {name}: was {was:,.10g}, is {now:,.10g}{grown}")
    return problems


def self_test() -> int:
    landed = json.loads(LANDED.read_text())
    assert problems_of(landed, landed) == [], "equal figures are no problem"
    for plan, row in landed.items():
        for name, value in row.items():
            worse = copy.deepcopy(landed)
            worse[plan][name] = value + 1 if TOLERANCE[name] == 0 else value * (1.01 + TOLERANCE[name])
            found = problems_of(worse, landed)
            assert len(found) == 1 and found[0].startswith(f"{plan}: {name}: was"), (plan, name, found)
            within = copy.deepcopy(landed)
            within[plan][name] = value * (1 + TOLERANCE[name] / 2)
            assert problems_of(within, landed) == [], (plan, name)
            missing = copy.deepcopy(landed)
            del missing[plan][name]
            assert len(problems_of(landed, missing)) == 1, (plan, name)
    assert any("messages" in row for row in landed.values()), "several ranks have landed"
    print("every figure that has grown was found")
    return 0


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        found = count_steps(pathlib.Path(name))
        if shutil.which("valgrind"):
            found["schedules"] = {"instructions": count_instructions(pathlib.Path(name))}
        else:
            print("skipped: instructions are not counted without valgrind: apt-get install valgrind")
    if sys.argv[1:] == ["--write"]:
        LANDED.write_text(json.dumps(found, indent=1) + "\n")
        return 0
    problems = problems_of(found, json.loads(LANDED.read_text()))
    print(json.dumps(found, indent=1))
    if problems:
        print("\ntests/bench/landed.json has other figures:", *problems, sep="\n  ")
        print("if that is meant: scripts/bench --land, and commit the file with the reason")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
