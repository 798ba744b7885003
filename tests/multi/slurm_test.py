"""In a Slurm allocation, as far as that can be played without Slurm: the variables that it sets, and an srun, a
scontrol and hosts (tests/support/namespaces.py) that do what Slurm's own would do."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import namespaces  # noqa: E402
from run_state import tensors  # noqa: E402
from vpp_process import DIGITS, ENVIRONMENT, FULL, MPIRUN, ROOT, VPP, Case, main  # noqa: E402

WHY_NOT = namespaces.why_not()
SAMPLES = ROOT / "configs/slurm"


def allocation(hosts: list[str], ranks_of_host: int) -> dict[str, str]:
    """What Slurm tells a batch script."""
    names, tasks = ",".join(hosts), f"{ranks_of_host}(x{len(hosts)})" if len(hosts) > 1 else str(ranks_of_host)
    return {"SLURM_JOB_ID": "7", "SLURM_JOBID": "7", "SLURM_NODELIST": names, "SLURM_JOB_NODELIST": names,
            "SLURM_NNODES": str(len(hosts)), "SLURM_JOB_NUM_NODES": str(len(hosts)), "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0", "SLURM_TASKS_PER_NODE": tasks, "SLURM_NTASKS": str(ranks_of_host * len(hosts))}


class SlurmCase(Case):
    def setUp(self):
        super().setUp()
        self.config = self.plan(DIGITS)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.here = {"PATH": f"{self.bin}:{os.environ['PATH']}", "VPP": VPP, **allocation([socket.gethostname()], 2)}

    def make_program(self, name: str, *lines: str) -> None:
        path = self.bin / name
        path.write_text("#!/usr/bin/env bash\n" + "\n".join(lines) + "\n")
        path.chmod(0o755)

    def settings(self, *settings: str) -> list[str]:
        return [word for setting in ("run.dir=run", *settings) for word in ("--set", setting)]


class Samples(SlurmCase):
    def setUp(self):
        super().setUp()
        self.make_program("scontrol", f'echo "$@" >> {self.folder}/queue')
        # What Slurm's does for the ranks, mpirun does here; signals go on in the same way.
        self.make_program("srun", '[ "$1 $2" = "--mpi=pmix --kill-on-bad-exit=1" ] || exit 1', "shift 2",
                          f"exec {MPIRUN} -q -np 2 --oversubscribe \"$@\"")

    def script(self, sample: str, *settings: str) -> list[str]:
        return ["bash", str(SAMPLES / sample), self.config, *self.settings(*settings)]

    def wait_for_step(self, job, step: int) -> None:
        end = time.monotonic() + 60
        while len(self.bits("run")) < step:
            self.assertIsNone(job.poll(), (self.folder / "err").read_text())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_they_ask_for_the_signal_and_may_be_queued_again(self):
        samples = sorted(SAMPLES.glob("*.sbatch"))
        self.assertEqual([path.name for path in samples], ["run.sbatch", "srun.sbatch"])
        for path in samples:
            subprocess.run(["bash", "-n", str(path)], check=True)
            lines = path.read_text().splitlines()
            first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
            for option in ("--signal=B:USR1@120", "--requeue", "--open-mode=append"):
                self.assertIn(f"#SBATCH {option}", lines[:first], "Slurm reads no further than the first command")

    def test_a_signal_saves_and_queues_again_and_the_next_time_goes_on(self):
        cases = [("run.sbatch", signal.SIGUSR1), ("srun.sbatch", signal.SIGTERM)]
        if FULL:
            cases += [("run.sbatch", signal.SIGTERM), ("srun.sbatch", signal.SIGUSR1)]
        for sample, number in cases:
            with self.subTest(sample=sample, number=number):
                self.requeue(sample, number)

    def requeue(self, sample: str, number: int) -> None:
        queue, run = self.folder / "queue", self.folder / "run"
        subprocess.run(["rm", "-rf", queue, run, self.folder / "whole"], check=True)
        with (self.folder / "err").open("w") as err:
            job = subprocess.Popen(self.script(sample, "train.steps=1000000"), cwd=self.folder,
                                   env=ENVIRONMENT | self.here, stdout=subprocess.DEVNULL, stderr=err)
            self.addCleanup(job.kill)
            self.wait_for_step(job, 5)
            os.kill(job.pid, number)
            self.assertEqual(job.wait(60), 85, (self.folder / "err").read_text())
        self.assertEqual(queue.read_text(), "requeue 7\n")
        steps = f"train.steps={len(self.bits('run')) + 3}"
        done = subprocess.run(self.script(sample, steps), cwd=self.folder, env=ENVIRONMENT | self.here, text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed after step", done.stderr)
        self.assertEqual(queue.read_text(), "requeue 7\n", "what is done is not queued again")
        whole = self.vpp("train", self.config, *self.settings(steps, "run.dir=whole"), ranks=2)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(self.bits("run"), self.bits("whole"))

    def test_another_end_is_not_queued_again(self):
        for sample in ("run.sbatch", "srun.sbatch"):
            done = subprocess.run(self.script(sample, "train.stepps=3"), cwd=self.folder, env=ENVIRONMENT | self.here,
                                  text=True, capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 78, done.stderr)
        self.assertFalse((self.folder / "queue").exists())


class Srun(SlurmCase):
    def tasks(self, *words: str, started: int = 2, **environment: str) -> list[subprocess.CompletedProcess]:
        """The first ones of two tasks of srun, which nobody joins. Each has a folder for what Open MPI keeps while it
        runs: it takes the one of all away when it is empty, under the hands of who fills it."""
        for task in range(started):
            (self.folder / f"tmp{task}").mkdir(exist_ok=True)
        jobs = [subprocess.Popen([VPP, *words], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=ENVIRONMENT | self.here | {
                                     "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": str(task),
                                     "SLURM_LOCALID": str(task), "TMPDIR": str(self.folder / f"tmp{task}"),
                                     **environment}) for task in range(started)]
        ends = [job.communicate(timeout=60) for job in jobs]
        return [subprocess.CompletedProcess(job.args, job.returncode, *end) for job, end in zip(jobs, ends)]

    def test_tasks_that_mpi_does_not_join_never_train_alone(self):
        for environment, text in (
                ({}, "vpp: error: srun has started 2 tasks without PMIx, and MPI would take each of them for a job of "
                     "its own; try srun --mpi=pmix, or vpp run in the allocation\n"),
                ({"PMIX_RANK": "0"}, "vpp: error: MPI has joined other ranks than were started (got 1, expected 2): ")):
            with self.subTest(environment):
                first, second = self.tasks("train", self.config, *self.settings(), **environment)
                self.assertEqual((first.returncode, second.returncode), (69, 69), first.stderr + second.stderr)
                self.assertIn(text, first.stderr)
                self.assertEqual(second.stderr, "", "it is said once")
        self.assertFalse((self.folder / "run").exists())

    def test_tasks_that_pmix_joins_say_how_scancel_stops_them(self):
        # mpirun is a PMIx server too: its ranks, told of their place as Slurm tells it alone.
        task = ("SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_LOCALID=$OMPI_COMM_WORLD_RANK SLURM_STEP_NUM_TASKS=2 "
                "exec env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE \"$@\"")
        line = [MPIRUN, "-q", "-np", "2", "--oversubscribe", "bash", "-c", task, "task", VPP, "train", self.config]
        environment = {name: value for name, value in (ENVIRONMENT | self.here).items() if name != "SLURM_PROCID"}
        done = subprocess.run([*line, *self.settings("train.steps=2")], cwd=self.folder, env=environment, text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("info: to stop: scancel --signal=USR1 7 saves and exits 85; scancel 7, which sends SIGTERM, "
                      "leaves Slurm's KillWait (30 s by default) for that\n", done.stderr)
        self.assertNotIn("mpirun", done.stderr)

    def test_a_shell_of_srun_is_no_task(self):
        one, = self.tasks("train", self.config, *self.settings("pipeline.num_stages=1", "train.steps=2"), started=1,
                          SLURM_PTY_PORT="4711")
        self.assertEqual(one.returncode, 0, one.stderr)

    def test_vpp_run_is_not_for_every_task(self):
        first, _ = self.tasks("run", self.config)
        self.assertEqual(first.returncode, 2, first.stderr)
        self.assertIn("vpp run starts mpirun itself; type it without mpirun or srun", first.stderr)


class Allocation(SlurmCase):
    def run_here(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([VPP, *words], cwd=self.folder, env=ENVIRONMENT | self.here, text=True,
                              capture_output=True, timeout=120)

    def test_mpirun_takes_its_hosts_and_ranks_from_slurm(self):
        done = self.run_here("run", self.config, *self.settings("train.steps=2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        line = done.stderr.splitlines()[1]
        for flag in ("--host", "--hostfile", "--oversubscribe"):
            self.assertNotIn(flag, line)

    def test_more_ranks_than_it_has_room_for(self):
        four = self.settings("pipeline.num_stages=4")
        done = self.run_here("run", self.config, *four)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("vpp run: mpirun does not start these ranks: There are not enough slots", done.stderr)
        doctor = " ".join(self.run_here("doctor", self.config, *four).stdout.split())
        self.assertIn("4 ranks, but SLURM_JOB_ID has room for 2 (SLURM_NTASKS), and mpirun starts no more", doctor)

    def test_two_hosts_whose_daemons_srun_starts(self):
        if WHY_NOT:
            self.skipTest(f"no hosts can be made from namespaces here: {WHY_NOT}")
        (self.folder / "net").mkdir()
        with namespaces.Network(self.folder / "net") as network:
            # mpirun calls: srun --ntasks-per-node=1 ... --nodelist=host2 --ntasks=1 orted ...; tasks know their place.
            self.make_program(
                "srun", f'echo "$@" >> {self.folder}/calls', "task=0",
                "while [[ $1 == --* ]]; do case $1 in --nodelist=*) nodes=${1#*=} ;; esac; shift; done",
                "for node in ${nodes//,/ }; do",
                f"    {network.agent} $node env SLURM_JOBID=7 SLURM_JOB_ID=7 SLURM_NODEID=$task SLURM_PROCID=$task "
                'SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=0 "$(printf "%q " "$@")" &',
                "    task=$((task + 1))", "done", "wait -n")
            variables = self.here | allocation([host.name for host in network.hosts], 1)
            done = subprocess.run([*network.hosts[0].enter(), "env", "OMPI_MCA_mpi_yield_when_idle=1", VPP, "run",
                                   self.config, *self.settings("train.steps=4")], env=ENVIRONMENT | variables,
                                  text=True, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("--nodelist=host2", (self.folder / "calls").read_text())
            self.assertEqual(len(self.bits("net/host1/run")), 4)
            self.assertTrue(tensors(network.hosts[1].folder / "run/checkpoints/step-00000004"))


if __name__ == "__main__":
    main()
