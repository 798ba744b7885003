"""Every plan of configs/ trains, and has the bits of one device on 1, 2 and 4 ranks under three schedules.

check_models.py [PLAN ...]    plans by name, all by default: one line a job, then "N passed, M failed"
check_models.py --self-test   that a difference and a job that compares nothing are found, and that every plan has its
                              test and its row in models/README.md

VPP_BINARY and VPP_MPIRUN name the programs.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import ENVIRONMENT, ROOT, VPP, Case  # noqa: E402

PLANS = sorted(path.stem for path in ROOT.glob("configs/*.toml"))
RANKS = (1, 2, 4)
SCHEDULES = {"1F1B": 1, "INTERLEAVED_1F1B": 2, "ZERO_BUBBLE_V": 2}  # and the stages of a rank
STEPS = 3
# Any number of stages, and microbatches of two samples.
SETTINGS = ("pipeline.split_method=FLOPS", "pipeline.split_points=[]", "pipeline.num_microbatches=8",
            "train.global_batch_size=16")


@dataclasses.dataclass(frozen=True)
class Job:
    """A `vpp verify`, and how many schedules must have had equal bits, each on so many numbers of ranks."""

    name: str
    words: tuple[str, ...]
    schedules: int = 1
    layouts_each: int = 1


def set_all(*settings: str) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("--set", setting))


def jobs_of(plan: dict) -> list[Job]:
    stages = len(plan["pipeline"].get("stage", []))
    if stages:  # by hand: their number stands fast, so fewer ranks have more of them, and schedules are those that fit
        return [
            Job(
                f"all schedules on {ranks}",
                ("--all-schedules", "--stages", str(ranks), "--virtual", str(stages // ranks)),
                schedules=len(SCHEDULES),
            )
            for ranks in RANKS
        ]
    on_ranks = ("--stages", ",".join(map(str, RANKS)))
    return [
        Job(
            schedule,
            (*on_ranks, "--virtual", str(chunks), *set_all(f"pipeline.schedule_type={schedule}", *SETTINGS)),
            layouts_each=len(RANKS),
        )
        for schedule, chunks in SCHEDULES.items()
    ]


def run(folder: pathlib.Path, ranks: int, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(Case.command(words, ranks), cwd=folder, env=ENVIRONMENT, text=True, capture_output=True)


def verify(name: str, job: Job) -> str:
    """What is wrong; nothing when all is equal."""
    with tempfile.TemporaryDirectory(prefix="vpp-test-") as folder:
        plan = str(ROOT / f"configs/{name}.toml")
        words = ("verify", plan, "--steps", str(STEPS), "--json", "--log-level", "warn", *job.words)
        done = run(pathlib.Path(folder), max(RANKS), *words)
    if not done.stdout.startswith("{"):
        return f"vpp verify ended with {done.returncode} and said nothing: {done.stderr[-2000:]}"
    result = json.loads(done.stdout)
    if done.returncode != 0 or not result["equal"]:
        return f"{len(result['layouts_different'])} different (code {done.returncode}); {result['difference']}"
    equal = [schedule for schedule, counts in result["schedules"].items() if counts["equal"] >= job.layouts_each]
    if len(equal) < job.schedules or result["steps"] != STEPS:
        return f"{result['steps']} steps of {equal}; refused: {result['layouts_refused']}"
    return ""


def train(name: str, plan: dict) -> str:
    """As the plan has it, for a few steps, with evaluations and a checkpoint."""
    pipeline = plan["pipeline"]
    ranks = len(pipeline.get("stage", [])) or pipeline["num_stages"]
    shorter = ["lr_schedule.warmup_steps=2"] if "lr_schedule" in plan else []
    with tempfile.TemporaryDirectory(prefix="vpp-test-") as folder:
        words = ("train", str(ROOT / f"configs/{name}.toml"), *set_all("train.steps=4", "train.eval_every=2", *shorter))
        done = run(pathlib.Path(folder), ranks, *words)
        file = pathlib.Path(folder) / "runs" / name / "metrics.jsonl"
        events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    counts = {kind: sum(event["event"] == kind for event in events) for kind in ("step", "eval", "save")}
    if done.returncode != 0 or counts != {"step": 4, "eval": 3, "save": 1}:
        return f"vpp train ended with {done.returncode} after {counts}: {done.stderr[-2000:]}"
    finite = all(math.isfinite(event["loss"]) for event in events if "loss" in event)
    return "" if finite else "a loss is not finite"


def report(what: str, start: float, problem: str) -> bool:
    print("FAIL" if problem else "pass", f"{what} ({time.monotonic() - start:.0f} s)", problem, flush=True)
    return not problem


def check(name: str) -> list[bool]:
    plan = tomllib.loads((ROOT / f"configs/{name}.toml").read_text())
    start = time.monotonic()
    passed = [report(f"{name}: train", start, train(name, plan))]
    for job in jobs_of(plan):
        start = time.monotonic()
        passed.append(report(f"{name}: {job.name}", start, verify(name, job)))
    return passed


def self_test() -> list[bool]:
    passed = []
    wrong_sums = set_all("pipeline.tied_gradients=per_step", *SETTINGS)
    too_few = set_all("pipeline.schedule_type=ZERO_BUBBLE_H2", *SETTINGS, "pipeline.num_microbatches=4")
    for what, words, expected in (
        ("sums of tied gradients once a step", wrong_sums, "different (code 80)"),
        ("a schedule that does not fit four ranks", too_few, "refused"),
    ):
        start = time.monotonic()
        problem = verify("gpt_tied", Job(what, ("--stages", "1,2,4", *words), layouts_each=3))
        passed.append(report(f"self-test: {what}", start, "" if expected in problem else f"not found: {problem}"))
    tests = pathlib.Path(__file__).with_name("CMakeLists.txt").read_text().split()
    rows = (ROOT / "models/README.md").read_text()
    for name in PLANS:
        missing = [place for place, found in (("test", name in tests), ("row", f"`{name}`" in rows)) if not found]
        if missing:
            passed.append(report(f"self-test: {name}", time.monotonic(), f"no {' and no '.join(missing)}"))
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PLAN", help=f"any of {', '.join(PLANS)}; default: all")
    parser.add_argument("--self-test", action="store_true", help="that differences are found")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in PLANS]
    if unknown:
        parser.error(f"no plan is called {', '.join(unknown)}; there are {', '.join(PLANS)}")
    if not VPP:
        parser.error("VPP_BINARY names no program")
    passed = self_test() if arguments.self_test else [ok for name in arguments.names or PLANS for ok in check(name)]
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
