"""The two sides that are compared: runs of vpp, and processes of peer.py that wait between their measurements."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

from models import MICROBATCHES, Size

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMP_NUM_THREADS": "1"}
LIMIT_S = 300  # of one run
# A process begins with the peak memory of the one that started it: let that be a shell.
SHELL = ["sh", "-c", '"$0" "$@"; exit $?']


class Run:
    """What a run of vpp left: its events by kind, and the seconds from its launch to the line of its first step."""

    def __init__(self, folder: pathlib.Path, first_step_s: float) -> None:
        self.folder, self.first_step_s = folder, first_step_s
        self.events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def of_kind(self, kind: str) -> list[dict]:
        return [event for event in self.events if event["event"] == kind]

    def step_ms(self, warm_up: int) -> float:
        return statistics.median(event["step_ms"] for event in self.of_kind("step")[warm_up:])

    @property
    def peak_bytes(self) -> int:
        """Of the largest rank."""
        return self.of_kind("step")[-1]["memory_bytes"]


class Vpp:
    def __init__(self, binary: str, folder: pathlib.Path) -> None:
        self.binary, self.folder = str(pathlib.Path(binary).resolve()), folder

    def command(self, ranks: int, words: list[str]) -> list[str]:
        if ranks == 1:
            return [*SHELL, self.binary, *words]
        return ["mpirun", "-q", "--oversubscribe", "-np", str(ranks), self.binary, *words]

    def inspect(self, text: str, *options: str) -> dict:
        (self.folder / "plan.toml").write_text(text)
        done = subprocess.run([self.binary, "inspect", "plan.toml", "--json", *options], cwd=self.folder, check=True,
                              capture_output=True, text=True, timeout=LIMIT_S)
        return json.loads(done.stdout)

    def profile(self, text: str, ranks: int, costs: str) -> None:
        (self.folder / "plan.toml").write_text(text)
        subprocess.run(self.command(ranks, ["profile", "plan.toml", "--out", costs]), cwd=self.folder, env=ENVIRONMENT,
                       check=True, capture_output=True, timeout=LIMIT_S)

    def train(self, text: str, ranks: int, *options: str, keep: bool = False) -> Run:
        """With keep the run goes on where the last one ended."""
        run = self.folder / "run"
        if not keep:
            shutil.rmtree(run, ignore_errors=True)
        (self.folder / "plan.toml").write_text(text)
        begin, first = time.monotonic(), 0.0
        command = self.command(ranks, ["train", "plan.toml", "--set", "run.dir=run", *options])
        with subprocess.Popen(command, cwd=self.folder, env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if line.startswith("step ") and not first:
                    first = time.monotonic() - begin
            problem = process.stderr.read()
        if process.returncode != 0:
            sys.exit(f"bench: {' '.join(command)} ended with {process.returncode}:\n{problem}")
        return Run(run, first)


class Peer(contextlib.AbstractContextManager):
    """The ranks of the other side, which live as long as this object."""

    def __init__(self, ranks: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.begun = time.time()
        self.processes = [
            subprocess.Popen([*SHELL, sys.executable, "-B", "-W", "ignore", str(HERE / "peer.py"), "--rank", str(rank),
                              "--world", str(ranks), "--port", str(port)], env=ENVIRONMENT, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for rank in range(ranks)
        ]

    def wait_until_ready(self) -> None:
        """Their starts must not run beside a measurement of vpp."""
        for process in self.processes:
            process.stdout.readline()

    def measure(self, size: Size, schedule: str, microbatches: int = MICROBATCHES, steps: int = 0) -> list[dict]:
        """The answers of the ranks."""
        asked = {"size": size.name, "schedule": schedule, "microbatches": microbatches, "warm_up": size.warm_up,
                 "steps": steps or size.steps}
        for process in self.processes:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        answers = []
        for rank, process in enumerate(self.processes):
            line = process.stdout.readline()
            if line == "ready\n":
                line = process.stdout.readline()
            if not line:
                sys.exit(f"bench: rank {rank} of torch.distributed.pipelining failed with {schedule}:\n"
                         + process.stderr.read())
            answers.append(json.loads(line))
        return answers

    def step_ms(self, size: Size, schedule: str) -> float:
        return max(answer["step_ms"] for answer in self.measure(size, schedule))

    def __exit__(self, *_) -> None:
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
            process.stdout.close()
            process.stderr.close()

