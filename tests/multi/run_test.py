"""`vpp run`: a real mpirun below it; what signals, kills and refusals become."""

import fcntl
import os
import pathlib
import pty
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ENVIRONMENT, SLOW_DATA, VPP, Case, children, is_alive, main, only_full  # noqa: E402


class RunCase(Case):
    def arguments(self, *settings: str, run: str = "run") -> list[str]:
        listed = (f"run.dir={run}", *settings)
        return ["run", self.plan(DIGITS), *(item for setting in listed for item in ("--set", setting))]

    def error(self) -> str:
        return (self.folder / "err").read_text()

    def wait_for_step(self, job, step: int, run: str = "run") -> None:
        deadline = time.monotonic() + 120
        while len(self.bits(run)) < step:
            self.assertIsNone(job.poll(), self.error())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def ranks(self, job) -> list[int]:
        """The ranks below mpirun below `vpp run`, by rank."""
        return [rank for child in children(job.pid) for rank in self.pids(child)]

    def expect_whole_run(self, *settings: str, run: str = "run") -> None:
        """The run folder has the bits of a run that nothing happened to."""
        whole = self.vpp(*self.arguments(*settings, run="whole"))
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertEqual(self.bits(run), self.bits("whole"))


class Line(RunCase):
    def test_the_printed_line_works_as_it_is(self):
        arguments = self.arguments("train.steps=3", run="my run's")
        printed = self.vpp(*arguments, "--print")
        self.assertEqual(printed.returncode, 0, printed.stderr)
        line = printed.stdout.strip()
        environment = {name: value for name, value in ENVIRONMENT.items() if "RUN_AS_ROOT" not in name}
        pasted = subprocess.run(line, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True,
                                timeout=120)
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        self.assertEqual(len(self.bits("my run's")), 3)
        done = self.vpp(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"vpp run: the plain line is\n  {line}\n", done.stderr)

    def test_flags_follow_what_is_asked_for(self):
        plan = self.plan(DIGITS)
        many = shlex.split(self.vpp("run", "-n", "2000", "verify", plan, "--stages", "1,2", "--print").stdout)
        self.assertIn("--oversubscribe", many)
        self.assertEqual(many[many.index("-np") + 1], "2000")
        self.assertEqual(many[-5:], [VPP, "verify", plan, "--stages", "1,2"])
        threads = shlex.split(self.vpp("run", plan, "--host", "localhost:2", "--set", "mesh.threads=2",
                                       "--print").stdout)
        self.assertIn("OMP_NUM_THREADS=2", threads)
        self.assertNotIn("--oversubscribe", threads)
        self.assertEqual(threads[threads.index("--host") + 1], "localhost:2")
        self.assertEqual(threads[-5:], [VPP, "train", plan, "--set", "mesh.threads=2"])

    def test_other_commands_go_through(self):
        done = self.vpp("run", "-n", "2", "verify", self.plan(DIGITS), "--steps", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("bitwise equal", done.stdout)

    def test_what_is_wrong_is_said_before_anything_starts(self):
        plan, nothing = self.plan(DIGITS), {"PATH": "/nowhere"}
        for arguments, code, text in (
                (["run"], 2, "vpp run plan.toml"),
                (["run", "inspect", plan], 2, "vpp inspect needs no ranks"),
                (["run", "verify", plan, "--stepz", "3"], 2, "--stepz"),
                (["run", plan, "--set", "train.stepps=3"], 78, "did you mean"),
                (["run", "-n", "3", plan], 69, "num_stages"),
                (["run", "nowhere.toml"], 66, "nowhere.toml"),
                (["run", plan, "--host", "localhost"], 69, "try --host localhost:2"),
                (["run", plan], 69, "cannot start mpirun: No such file or directory; install Open MPI, or put its")):
            with self.subTest(arguments):
                done = self.vpp(*arguments, environment=nothing)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(text, done.stderr)
        nested = self.vpp("run", plan, environment={"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"})
        self.assertEqual(nested.returncode, 2)

    def test_a_refusal_of_mpirun_is_told_in_its_words(self):
        (self.folder / "hosts").write_text("localhost slots=1\n")
        done = self.vpp(*self.arguments(), "--hostfile", "hosts")
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("vpp run: mpirun does not start these ranks: There are not enough slots", done.stderr)


class Signals(RunCase):
    def expect_ends(self, ranks: list[int]) -> None:
        deadline = time.monotonic() + 30
        while any(map(is_alive, ranks)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_a_stop_saves_and_the_same_command_goes_on(self):
        steps = "train.steps=100"
        for number in (signal.SIGINT, signal.SIGTERM):
            before = len(self.bits("run"))
            job = self.start(*self.arguments(steps, "checkpoint.every=1000"), ranks=0, environment=SLOW_DATA)
            self.wait_for_step(job, before + 5)
            os.kill(job.pid, number)
            self.assertEqual(job.wait(60), 85, self.error())
            step = len(self.bits("run"))
            self.assertGreater(step, before)
            self.assertTrue((self.folder / f"run/checkpoints/step-{step:08}").is_dir())
            self.assertIn(f"stopped after step {step}", self.error())
        done = self.vpp(*self.arguments(steps, "checkpoint.every=1000"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_whole_run(steps)

    def test_a_stop_before_the_ranks_live(self):
        job = self.start(*self.arguments("train.steps=100000"), ranks=0)
        while "the plain line is" not in self.error():
            self.assertIsNone(job.poll(), self.error())
            time.sleep(0.002)
        os.kill(job.pid, signal.SIGTERM)
        self.assertEqual(job.wait(60), 85, self.error())
        # mpirun forwards nothing before its ranks live; what was sent is sent again until it is heard.
        self.assertLess(len(self.bits("run")), 1000)

    def test_a_second_interrupt_ends_at_once(self):
        job = self.start(*self.arguments("train.steps=100000", "train.global_batch_size=1024"), ranks=0)
        self.wait_for_step(job, 1)
        ranks = self.ranks(job)
        self.assertEqual(len(ranks), 2)
        for _ in range(2):
            os.kill(job.pid, signal.SIGINT)
            time.sleep(0.02)
        start = time.monotonic()
        self.assertIn(job.wait(60), (85, 130))
        self.assertLess(time.monotonic() - start, 15)
        self.expect_ends(ranks)

    def test_a_job_without_its_launcher_saves_and_ends(self):
        job = self.start(*self.arguments("train.steps=100000"), ranks=0)
        self.wait_for_step(job, 3)
        ranks = self.ranks(job)
        os.kill(job.pid, signal.SIGKILL)
        self.expect_ends(ranks)
        self.assertTrue((self.folder / f"run/checkpoints/step-{len(self.bits('run')):08}").is_dir())


class Output(RunCase):
    LOST = ("vpp: error: standard output did not take all that was printed; make room where it goes, or let its reader "
            "stay\n")

    def read_a_line(self, *arguments: str, also_errors: bool = False) -> int:
        """The code of a job whose reader goes away behind the first line."""
        with (self.folder / "err").open("w") as err:
            job = subprocess.Popen([VPP, *arguments], cwd=self.folder, env=ENVIRONMENT | SLOW_DATA,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT if also_errors else err)
        self.addCleanup(job.kill)
        self.assertTrue(job.stdout.readline().endswith(b"\n"))
        self.assertIsNone(job.poll(), "lines come at once")
        job.stdout.close()
        return job.wait(120)

    def test_a_training_goes_on_without_its_reader(self):
        settings = ("train.steps=25", "run.max_restarts=3", "report.every=1")
        for number, more in enumerate(({}, {"also_errors": True})):
            run = f"run{number}"
            self.assertEqual(self.read_a_line(*self.arguments(*settings, run=run), **more), 74, self.error())
            self.assertEqual(len(self.bits(run)), 25)
            self.assertEqual(self.run_end(run), {"exit_code": 0, "text": "25 steps are done"})
            self.assertTrue((self.folder / run / "checkpoints/step-00000025").is_dir())
            if not more:
                self.assertIn(self.LOST, self.error())
                self.assertNotIn("restart 1", self.error())

    def test_so_does_one_process(self):
        settings = ("run.dir=run", "train.steps=25", "report.every=1", "pipeline.num_stages=1")
        options = [item for setting in settings for item in ("--set", setting)]
        self.assertEqual(self.read_a_line("train", self.plan(DIGITS), *options), 74, self.error())
        self.assertEqual(self.run_end("run"), {"exit_code": 0, "text": "25 steps are done"})
        self.assertTrue((self.folder / "run/checkpoints/step-00000025").is_dir())
        self.assertIn(self.LOST, self.error())

    def test_closed_streams_are_not_the_next_files_that_are_opened(self):
        for run, closed in (("output", ">&-"), ("all", "<&- >&- 2>&-")):
            with self.subTest(closed):
                done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", VPP,
                                       *self.arguments("train.steps=5", run=run)],
                                      cwd=self.folder, env=ENVIRONMENT, stderr=subprocess.DEVNULL, timeout=60)
                self.assertEqual(done.returncode, 74)
                self.assertEqual(len(self.bits(run)), 5)
                self.assertEqual(self.run_end(run), {"exit_code": 0, "text": "5 steps are done"})

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([VPP, "run", "eval", self.plan(DIGITS), "--initial-weights"], cwd=self.folder,
                                  env=ENVIRONMENT, text=True, stdout=full, stderr=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn(self.LOST, done.stderr)

    def test_a_terminal_has_the_live_line(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 99, 0, 0))
        job = subprocess.Popen([VPP, *self.arguments("train.steps=25")], cwd=self.folder,
                               env=ENVIRONMENT | SLOW_DATA | {"TERM": "xterm"}, stdout=theirs,
                               stderr=subprocess.DEVNULL)
        self.addCleanup(job.kill)
        os.close(theirs)
        screen = b""
        while True:
            try:
                screen += os.read(ours, 4096)
            except OSError:
                break
        os.close(ours)
        self.assertEqual(job.wait(60), 0)
        self.assertIn(b"\x1b[?7l", screen)

    def test_a_terminal_that_stands_still_holds_up_no_training(self):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 99, 0, 0))
        with (self.folder / "err").open("w") as err:
            words = self.arguments("train.steps=1500", "report.every=1", "pipeline.num_microbatches=1",
                                   "train.global_batch_size=2")
            job = subprocess.Popen([VPP, *words], cwd=self.folder, env=ENVIRONMENT | {"TERM": "xterm"}, stdout=theirs,
                                   stderr=err)
        self.addCleanup(job.kill)
        os.close(theirs)
        deadline = time.monotonic() + 100
        while not self.run_end("run"):
            self.assertIsNone(job.poll(), self.error())
            self.assertLess(time.monotonic(), deadline, "rank 0 waits for the terminal")
            time.sleep(0.1)
        self.assertEqual(self.run_end("run"), {"exit_code": 0, "text": "1500 steps are done"})
        screen = b""
        while True:
            try:
                screen += os.read(ours, 65536)
            except OSError:
                break
        os.close(ours)
        self.assertEqual(job.wait(60), 0)
        self.assertGreater(len(screen), 1 << 17, "more than the terminal and the pipes before it hold")
        for step in (1, 1500):
            self.assertRegex(screen, rf"step +{step}/1500 ".encode())

    @only_full
    def test_a_slow_reader_is_no_hang(self):
        reader = subprocess.Popen(["sh", "-c", "while [ ! -e run/end.json ]; do sleep 0.1; done; sleep 13; cat"],
                                  cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.kill)
        with (self.folder / "err").open("w") as err:
            job = subprocess.Popen([VPP, *self.arguments("train.steps=1500", "report.every=1")], cwd=self.folder,
                                   env=ENVIRONMENT, stdout=reader.stdin, stderr=err)
        self.addCleanup(job.kill)
        text, _ = reader.communicate(timeout=120)
        self.assertEqual(job.wait(60), 0, self.error())
        self.assertGreater(len(text), 1 << 17)
        self.assertRegex(text, "step +1500/1500 ")

    def test_a_parent_that_ignores_its_children(self):
        job = subprocess.run([VPP, *self.arguments("train.steps=2")], cwd=self.folder, env=ENVIRONMENT, timeout=120,
                             capture_output=True, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(job.returncode, 0, job.stderr)


class Beside(RunCase):
    def test_who_dies_beside_a_training_writes_nothing_into_its_folder(self):
        live = self.start(*self.arguments("train.steps=100000"), ranks=0, environment=SLOW_DATA)
        self.wait_for_step(live, 3)
        for more in ([], ["--dry-run"]):
            before = len(self.bits("run"))
            job = subprocess.Popen([VPP, *self.arguments("train.steps=100000"), *more], cwd=self.folder, text=True,
                                   env=ENVIRONMENT | SLOW_DATA, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            self.addCleanup(job.kill)
            while not (ranks := self.ranks(job)):
                self.assertIsNone(job.poll())
            self.wait_for_step(live, before + 2)
            os.kill(ranks[0], signal.SIGKILL)
            _, error = job.communicate(timeout=60)
            self.assertEqual(job.returncode, 75, error)
            self.assertIn("a rank was killed by signal 9", error)
            self.assertIsNone(self.run_end("run"))
        os.kill(live.pid, signal.SIGINT)
        self.assertEqual(live.wait(60), 85)
        self.assertEqual(self.run_end("run")["exit_code"], 85)

    def test_a_dry_run_has_nothing_to_save(self):
        job = self.start(*self.arguments(), "--dry-run", ranks=0)
        while not self.ranks(job):
            self.assertIsNone(job.poll(), self.error())
        os.kill(job.pid, signal.SIGINT)
        self.assertEqual(job.wait(60), 130, self.error())


class Restarts(RunCase):
    settings = ("train.steps=60", "checkpoint.every=10")

    def wait_for_save(self, job) -> None:
        """The first one is whole, and steps behind it are done."""
        self.wait_for_step(job, 15)
        while not (self.folder / "run/checkpoints/step-00000010").is_dir():
            self.assertIsNone(job.poll(), self.error())
            time.sleep(0.02)

    def kill_a_rank(self, *settings: str) -> subprocess.Popen:
        job = self.start(*self.arguments(*self.settings, *settings), ranks=0, environment=SLOW_DATA)
        self.wait_for_save(job)
        os.kill(self.ranks(job)[1], signal.SIGKILL)
        return job

    def test_a_killed_rank_costs_one_restart_and_no_bit(self):
        job = self.kill_a_rank("run.max_restarts=3")
        self.assertEqual(job.wait(120), 0, self.error())
        self.assertIn("a rank was killed by signal 9", self.error())
        self.assertEqual(self.error().count("restart 1 of 3"), 1)
        self.assertNotIn("restart 2", self.error())
        self.assertIn("resumed after step", self.error())
        self.expect_whole_run(*self.settings)

    def test_a_rank_that_dies_slowly_is_waited_for(self):
        job = self.start(*self.arguments(*self.settings, "run.max_restarts=1"), ranks=0, environment=SLOW_DATA)
        self.wait_for_save(job)
        with (self.folder / "run/.lock").open() as lock:
            os.kill(self.ranks(job)[0], signal.SIGKILL)
            fcntl.flock(lock, fcntl.LOCK_EX)  # as if that process were there still
            time.sleep(5)
        self.assertEqual(job.wait(120), 0, self.error())
        self.assertIn("restart 1 of 1", self.error())
        self.expect_whole_run(*self.settings)

    def test_without_the_key_it_is_75_and_what_to_type(self):
        job = self.kill_a_rank()
        self.assertEqual(job.wait(120), 75, self.error())
        self.assertIn("run.max_restarts = 3 would do that by itself", self.error())
        self.assertEqual(self.run_end("run")["exit_code"], 75)
        self.assertLess(len(self.bits("run")), 60)
        done = self.vpp(*self.arguments(*self.settings))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_whole_run(*self.settings)

    def test_a_run_that_began_anew_goes_on_from_its_own_checkpoints(self):
        old = self.vpp(*self.arguments("train.steps=20", "train.seed=7"))
        self.assertEqual(old.returncode, 0, old.stderr)
        job = self.start(*self.arguments(*self.settings, "run.max_restarts=1", "checkpoint.resume=no"), ranks=0,
                         environment=SLOW_DATA)
        while len(self.bits("run")) >= 20:
            self.assertIsNone(job.poll(), self.error())
            time.sleep(0.01)
        self.wait_for_save(job)
        os.kill(self.ranks(job)[0], signal.SIGKILL)
        self.assertEqual(job.wait(120), 0, self.error())
        self.assertRegex(self.error(), "resumed after step [1-5]0 ")
        self.expect_whole_run(*self.settings)

    def test_a_job_that_always_dies_at_the_same_step_is_not_started_for_ever(self):
        done = self.vpp(*self.arguments("train.steps=60", "checkpoint.every=5", "checkpoint.background=false",
                                        "run.max_restarts=100"), environment={"VPP_STOP_POINT": "0:1"})
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertEqual(done.stderr.count("stop point 1,"), 2, done.stderr)
        self.assertIn("not started again: no new step since the last restart, which was at step 5", done.stderr)


if __name__ == "__main__":
    main()
