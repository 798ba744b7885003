"""Starting the real program from tests: alone or under mpirun, with plans as inline text in a folder of their own."""

import atexit
import contextlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

VPP = os.environ.get("VPP_BINARY", "")
MPIRUN = os.environ.get("VPP_MPIRUN", "mpirun")
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Open MPI removes the folder of its sessions with the last of them, also while another mpirun is about to use it.
SESSIONS = tempfile.mkdtemp(prefix="vpp-mpi-")
atexit.register(shutil.rmtree, SESSIONS, ignore_errors=True)
ENVIRONMENT = os.environ | {
    "OMPI_MCA_orte_tmpdir_base": SESSIONS,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
}

# Of what takes long and shows little that others do not, only scripts/test --full runs all.
FULL = bool(os.environ.get("VPP_FULL"))
only_full = unittest.skipUnless(FULL, "runs with scripts/test --full")

# The library of faults, for jobs that get it by LD_PRELOAD.
FAULTS = os.environ.get("VPP_FAULTS", "")
# A step of the digits takes a tenth of a second, which leaves time to do something to a job; no bit changes by it.
SLOW_DATA = {"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": "0 pread digits_train_image 1 1000000 0 3"}

# Trains the BatchNorm classifier on the digits in a second; tests add to it with --set.
DIGITS = f"""
[model]
file = "{ROOT}/models/out/bn_cnn.pt"
inputs = ["image"]
[loss]
kind = "cross_entropy"
target = "label"
[data]
kind = "arrays"
[data.train]
image = "{ROOT}/models/data/digits_train_image.npy"
label = "{ROOT}/models/data/digits_train_label.npy"
[data.val]
image = "{ROOT}/models/data/digits_val_image.npy"
label = "{ROOT}/models/data/digits_val_label.npy"
[pipeline]
num_stages = 2
num_microbatches = 4
[train]
steps = 30
global_batch_size = 32
[optimizer]
lr = 0.003
"""


def proc_text(pid: int, name: str) -> str:
    """A file of /proc about a process; "" once the process has ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def children(pid: int) -> list[int]:
    return [int(child) for child in proc_text(pid, f"task/{pid}/children").split()]


def is_alive(pid: int) -> bool:
    state = proc_text(pid, "stat").rpartition(")")[2].split()
    return bool(state) and state[0] != "Z"


def has_open(pid: int, path: pathlib.Path) -> bool:
    """Whether the process holds the file open. It may open and close others meanwhile."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/fd/{number}") == str(path.resolve()):
                return True
    return False


class Case(unittest.TestCase):
    """A test with a folder of its own, in which the program runs."""

    def setUp(self):
        start = time.monotonic()
        self.addCleanup(lambda: print(f"{time.monotonic() - start:.1f} s", end=" ", file=sys.stderr, flush=True))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="vpp-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def plan(self, text: str, name: str = "plan.toml") -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def vpp(self, *arguments: str, ranks: int = 0, timeout: float = 120,
            environment: dict[str, str] | None = None) -> subprocess.CompletedProcess:
        """Runs to the end; ranks = 0 starts without mpirun."""
        done = subprocess.run(self.command(arguments, ranks), cwd=self.folder, env=ENVIRONMENT | (environment or {}),
                              text=True, capture_output=True, timeout=timeout)
        if ranks and done.returncode == 1 and not done.stderr:
            self.fail("mpirun has ended with 1 and without a word, as it does behind SIGTERM, SIGINT or SIGHUP to it; "
                      "vpp has no such code")
        return done

    def has_cuda_parts(self) -> bool:
        return "\nCUDA " in self.vpp("--version").stdout

    def start(self, *arguments: str, ranks: int, environment: dict[str, str] | None = None,
              limits: dict[int, int] | None = None) -> subprocess.Popen:
        """Starts a job in the background; its output goes to files of the folder. `limits` are those of setrlimit."""
        def set_limits() -> None:
            for which, limit in (limits or {}).items():
                resource.setrlimit(which, (limit, limit))


        out, err = (self.folder / "out").open("w"), (self.folder / "err").open("w")
        self.addCleanup(out.close)
        self.addCleanup(err.close)
        job = subprocess.Popen(self.command(arguments, ranks), cwd=self.folder, env=ENVIRONMENT | (environment or {}),
                               stdout=out, stderr=err, preexec_fn=set_limits)
        self.addCleanup(job.kill)
        return job

    @staticmethod
    def command(arguments: tuple[str, ...], ranks: int) -> list[str]:
        launcher = [MPIRUN, "-q", "--oversubscribe", "-np", str(ranks)] if ranks else []
        return launcher + [VPP, *arguments]

    def metrics(self, run: str) -> list[dict]:
        """Whole lines: the last one may be under way."""
        path = self.folder / run / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def record_run(self, name: str, losses: list, total_steps: int = 9, **settings: str) -> pathlib.Path:
        """A run folder as a training leaves it after so many steps, without one. Settings: train__seed="1"."""
        folder = self.folder / name
        folder.mkdir(parents=True)
        lines = [{"event": "step", "step": step, "total_steps": total_steps, "loss": loss}
                 for step, loss in enumerate(losses, 1)]
        if len(losses) == total_steps:
            lines.append({"event": "save", "step": total_steps, "size_bytes": 4096, "seconds": 0.5})
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        plan = "".join("[{}]\n{} = {}\n".format(*key.split("__"), value) for key, value in settings.items())
        if plan:
            (folder / "plan.toml").write_text(plan)
        return folder

    def run_end(self, run: str) -> dict | None:
        """What the run folder tells about how it ended."""
        path = self.folder / run / "end.json"
        return json.loads(path.read_text()) if path.exists() else None

    def bits(self, run: str) -> list[tuple]:
        """What must not depend on layout, time or interruption."""
        keys = ("step", "loss", "microbatch_losses", "grad_norm", "lr")
        return [tuple(str(line[key]) for key in keys) for line in self.metrics(run) if line["event"] == "step"]

    def pids(self, job: subprocess.Popen | int) -> list[int]:
        """The ranks of a job, or of the mpirun with this number, by rank."""
        mpirun = job if isinstance(job, int) else job.pid
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int(re.search(r"PPid:\s*(\d+)", (entry / "status").read_text()).group(1))
                variables = (entry / "environ").read_bytes().split(b"\0")
            except (OSError, AttributeError):
                continue
            rank = next((v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")), None)
            if parent == mpirun and rank:
                found[int(rank.partition(b"=")[2])] = int(entry.name)
        return [found[rank] for rank in sorted(found)]


def main() -> None:
    if not VPP:
        sys.exit("VPP_BINARY names no program")
    unittest.main(verbosity=2)
