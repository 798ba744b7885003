"""Minutes of random faults with a seed: jobs are killed, stopped, signalled, their disks fail, their checkpoints are
damaged, and each is simply started again, at another layout. Every run has to end with the bits of a run to which
nothing happened, and no start may need a hand. `scripts/soak MINUTES [SEED]` calls it."""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints, final  # noqa: E402
from vpp_process import DIGITS, Case  # noqa: E402

STEPS = 400
LAYOUTS = [(1, "1F1B", 1), (2, "1F1B", 1), (2, "INTERLEAVED_1F1B", 2), (4, "GPIPE", 1), (3, "ZERO_BUBBLE_H1", 1)]
# What a start may end with: done, disk, lost rank, stopped, and what mpirun makes of signals: SIGKILL, SIGTERM, and
# SIGUSR1 to a process that is so young that it does not listen yet.
EXPECTED = {0, 74, 75, 85, 130, 137, 143, 138, 1}
# Starts have long deadlines (120 s for MPI, 300 s for the program), so ranks are stopped only when steps run.
LONGEST_START_S = 400
HANG_LIMIT_S = 30  # HangLimits of lib/launch/child.hpp, where `vpp run` does the same
FAULTS_LIBRARY = os.environ.get("VPP_FAULTS", "")


def has_dead_child(parent: int) -> bool:
    """That was not waited for."""
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, owner = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(owner) == parent:
            return True
    return False


def is_stopped(process: int) -> bool:
    """By SIGSTOP. One that has just ended is not."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


class Soak(Case):
    """Not a test of its own: borrows starting and reading."""

    def __init__(self, folder: pathlib.Path, seed: int):
        super().__init__()
        self.folder = folder
        self.draw = random.Random(seed)
        self.faults: collections.Counter = collections.Counter()
        self.starts = 0
        self.run_now, self.num_ranks = "", 0  # of the start under way
        self.plan_file = self.plan(DIGITS)

    def runTest(self) -> None:  # unittest asks for one
        pass

    def begin(self, run: str, layout: tuple, environment: dict[str, str]):
        ranks, schedule, chunks = layout
        self.run_now, self.num_ranks = run, ranks
        settings = [f"run.dir={run}", f"train.steps={STEPS}", "checkpoint.every=20", "train.eval_every=70",
                    "train.eval_batches=2", "run.deadline_floor_s=2", "run.deadline_factor=5", "report.every=100000",
                    f"pipeline.num_stages={ranks}", f"pipeline.schedule_type={schedule}",
                    f"pipeline.virtual_chunks={chunks}"]
        self.starts += 1
        return self.start("train", self.plan_file, *(item for setting in settings for item in ("--set", setting)),
                          ranks=ranks, environment={"LD_PRELOAD": FAULTS_LIBRARY, **environment})

    def fault_before(self, run: str, ranks: int) -> tuple[str, dict[str, str]]:
        """One that the start itself carries, or none."""
        rank, number = self.draw.randrange(ranks), self.draw.randrange(1, 60)
        kind = self.draw.choice(["", "", "", "", "dies in a save", "disk full", "disk error", "clock", "flip", "cut"])
        if kind == "dies in a save":
            return kind, {"VPP_STOP_POINT": f"{rank}:{number}"}
        if kind == "disk full":
            return kind, {"VPP_DISK_FAULT": f"{rank} write /checkpoints/ {number} {self.draw.choice([1, 40])} 28 0"}
        if kind == "disk error":
            call = self.draw.choice(["fsync", "rename"])
            return kind, {"VPP_DISK_FAULT": f"{rank} {call} /checkpoints/ {number % 9 + 1} 1 5 0"}
        if kind == "clock":
            return kind, {"VPP_CLOCK_JUMP": str(self.draw.randrange(-10**8, 10**8))}
        if kind in ("flip", "cut"):
            return (kind if self.damage(run, kind) else ""), {}
        return "", {}

    def damage(self, run: str, kind: str) -> bool:
        """In a file of the newest checkpoint. When no other is there, the run would not go on by itself."""
        found = checkpoints(self.folder / run)
        if len(found) < 2:
            return False
        file = self.draw.choice(sorted(found[-1].iterdir()))
        data = bytearray(file.read_bytes())
        place = self.draw.randrange(len(data))
        if kind == "flip":
            data[place] ^= 1 << self.draw.randrange(8)
        file.write_bytes(data if kind == "flip" else data[:place])
        return True

    def fault_during(self, job, run: str, ranks: int) -> str:
        """After a random time; empty when the job was faster."""
        num_steps = len(self.bits(run))
        end = time.monotonic() + self.draw.uniform(0.5, 6)
        while time.monotonic() < end:
            if job.poll() is not None:
                return ""
            time.sleep(0.02)
        kind = self.draw.choice(["kill", "kill", "stop", "signal", "signal to mpirun", "terminate", "interrupt"])
        pids = self.pids(job)
        if len(pids) != ranks or job.poll() is not None:
            return ""
        target = self.draw.choice(pids)
        try:
            if kind == "kill":
                os.kill(target, signal.SIGKILL)
            elif kind == "stop":
                if ranks == 1 or len(self.bits(run)) <= num_steps:
                    return ""
                os.kill(target, signal.SIGSTOP)
            elif kind == "signal":
                os.kill(target, signal.SIGUSR1)
            else:
                number = {"signal to mpirun": signal.SIGUSR1, "terminate": signal.SIGTERM, "interrupt": signal.SIGINT}
                os.kill(job.pid, number[kind])
        except ProcessLookupError:
            return ""
        return kind

    def wait(self, job) -> tuple[int, str]:
        """Its code, and whether mpirun itself hung: Open MPI 4.1 may, when a rank dies while it connects."""
        end, dead_since = time.monotonic() + LONGEST_START_S, None
        while (code := job.poll()) is None:
            now = time.monotonic()
            dead_since = (dead_since or now) if has_dead_child(job.pid) else None
            if dead_since and now - dead_since > HANG_LIMIT_S:
                job.kill()
                return job.wait(), "mpirun hung"
            self.let_go_of_the_last(job)
            if now > end:
                raise SystemExit(f"soak: a start does not end; it is left running as process {job.pid}")
            time.sleep(0.1)
        return code, ""

    def let_go_of_the_last(self, job) -> None:
        """A rank that is stopped in its last moments, when all is done and the others have left, has nobody to notice
        it: mpirun waits for it. That is no fault that a job could meet."""
        ranks = self.pids(job)
        if len(ranks) == 1 and self.num_ranks > 1 and is_stopped(ranks[0]) and self.is_done():
            os.kill(ranks[0], signal.SIGCONT)
            self.faults["stop behind the end"] += 1

    def is_done(self) -> bool:
        ends = self.folder / self.run_now / "end.json"
        return ends.exists() and json.loads(ends.read_text())["exit_code"] == 0

    def one_start(self, run: str) -> bool:
        """Whether the run is done."""
        layout = self.draw.choice(LAYOUTS)
        before, environment = self.fault_before(run, layout[0])
        job = self.begin(run, layout, environment)
        during = self.fault_during(job, run, layout[0])
        code, hung = self.wait(job)
        for kind in (before, during, hung):
            if kind:
                self.faults[kind] += 1
        error = (self.folder / "err").read_text()
        if hung:
            return False
        if code not in EXPECTED or (code == 1 and during not in ("terminate", "interrupt")):
            raise SystemExit(f"soak: {run}, {layout}, {before or '-'}, {during or '-'}: exit {code}\n{error}")
        return code == 0

    def is_unbroken(self, run: str) -> bool:
        return self.bits(run) == self.bits("whole") and final(self.folder / run) == final(self.folder / "whole")

    def check_the_comparison(self) -> None:
        """One changed bit of a weight has to be seen."""
        shutil.copytree(self.folder / "whole", self.folder / "control")
        shard = next(checkpoints(self.folder / "control")[-1].glob("*.safetensors"))
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        if self.is_unbroken("control") or not self.is_unbroken("whole"):
            raise SystemExit("soak: the comparison sees nothing")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("minutes", type=float, nargs="?", default=1)
    arguments.add_argument("seed", type=int, nargs="?", default=1)
    arguments = arguments.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="vpp-soak-"))
    soak = Soak(folder, arguments.seed)
    if soak.begin("whole", LAYOUTS[1], {}).wait(600) != 0:
        raise SystemExit("soak: the unbroken run failed:\n" + (folder / "err").read_text())
    soak.check_the_comparison()
    end = time.monotonic() + 60 * arguments.minutes
    runs = 0
    while time.monotonic() < end:
        run = f"run{runs}"
        while not soak.one_start(run):
            pass
        if not soak.is_unbroken(run):
            raise SystemExit(f"soak: {run} has other bits than the unbroken run; both are in {folder}")
        shutil.rmtree(folder / run)
        runs += 1
    listed = ", ".join(f"{count} x {kind}" for kind, count in sorted(soak.faults.items()))
    print(f"soak: {runs} runs of {STEPS} steps in {soak.starts - 1} starts, {soak.faults.total()} faults ({listed}); "
          "every run ended with the bits of the unbroken one; no hand was needed")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
