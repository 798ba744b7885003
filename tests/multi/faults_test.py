"""Jobs that are killed, stopped and signalled under a real mpirun: what they say, how they end, what is left."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import files_of  # noqa: E402
from vpp_process import (DIGITS, ENVIRONMENT, FAULTS, FULL, ROOT, SLOW_DATA, Case, has_open, main,  # noqa: E402
                         proc_text)


class RunningCase(Case):
    """Jobs to which something happens while they run."""

    def wait_for_step(self, job, run: str, step: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.bits(run)) < step:
            self.assertIsNone(job.poll(), (self.folder / "err").read_text())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)


    def expect_end(self, code: int, error: str) -> None:
        """The run folder tells what was said."""
        end = self.run_end("run")
        self.assertEqual(end["exit_code"], code)
        self.assertIn("vpp: error: " + end["text"], error)
        log = (self.folder / "run/log.txt").read_text().splitlines()
        self.assertTrue(any(line.endswith(f"error: {end['text']} (exit code {code})") for line in log), log[-3:])


class LostRanks(RunningCase):
    def test_a_killed_rank_costs_nothing_but_time(self):
        settings = ["--set", "train.steps=80", "--set", "checkpoint.every=10"]
        plan = self.plan(DIGITS)
        whole = self.vpp("train", plan, *settings, "--set", "run.dir=whole", ranks=2)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        draw = random.Random(7)
        for _ in range(2):
            job = self.start("train", plan, *settings, "--set", "run.dir=run", ranks=2, environment=SLOW_DATA)
            self.wait_for_step(job, "run", draw.randrange(12, 30) + len(self.bits("run")) // 10 * 10)
            self.assertIsNone(self.run_end("run"), "it is under way")
            os.kill(self.pids(job)[draw.randrange(2)], signal.SIGKILL)
            self.assertEqual(job.wait(60), 137)
        done = self.vpp("train", plan, *settings, "--set", "run.dir=run", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed after step", done.stderr)
        self.assertEqual(self.bits("whole"), self.bits("run"))
        self.assertEqual(self.run_end("run"), {"exit_code": 0, "text": "80 steps are done"})

    def test_a_stopped_rank_is_named(self):
        job = self.start("train", self.plan(DIGITS), "--set", "train.steps=100000", "--set", "run.dir=run",
                         "--set", "run.deadline_floor_s=3", "--set", "run.deadline_factor=1",
                         "--set", "pipeline.num_stages=4", ranks=4)
        self.wait_for_step(job, "run", 5)
        os.kill(self.pids(job)[2], signal.SIGSTOP)
        start = time.monotonic()
        self.assertEqual(job.wait(60), 75)
        self.assertLess(time.monotonic() - start, 15)
        error = (self.folder / "err").read_text()
        self.assertIn("rank 2", error)
        self.expect_end(75, error)

    def test_an_error_on_one_rank_ends_all_with_its_code(self):
        labels = bytearray((ROOT / "models/data/digits_train_label.npy").read_bytes())
        labels[-8:] = (10).to_bytes(8, "little")
        (self.folder / "labels.npy").write_bytes(labels)
        start = time.monotonic()
        done = self.vpp("train", self.plan(DIGITS), "--set", f"data.train.label={self.folder}/labels.npy",
                        "--set", "train.steps=60", "--set", "run.dir=run", ranks=2)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("labels.npy", done.stderr)
        self.assertIn("of microbatch", done.stderr)

    def test_a_data_file_that_is_cut_while_it_is_read_is_named(self):
        images = self.folder / "images.npy"
        images.write_bytes((ROOT / "models/data/digits_train_image.npy").read_bytes())
        job = self.start("train", self.plan(DIGITS), "--set", f"data.train.image={images}", "--set", "run.dir=run",
                         "--set", "train.steps=100000", ranks=2)
        self.wait_for_step(job, "run", 5)
        os.truncate(images, 1000)
        self.assertEqual(job.wait(60), 65)
        error = (self.folder / "err").read_text()
        self.assertIn(f"{images} ends at byte 1000, but", error)
        self.expect_end(65, error)

    def test_two_jobs_in_one_run_folder(self):
        arguments = ("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", "train.steps=100000")
        job = self.start(*arguments, ranks=2)
        self.wait_for_step(job, "run", 2)
        before = (self.folder / "run/plan.toml").read_bytes()
        second = self.vpp(*arguments, "--set", "optimizer.lr=1", ranks=2)
        self.assertEqual(second.returncode, 73, second.stderr)
        self.assertIn(f"is held by process {self.pids(job)[0]} on ", second.stderr)
        self.assertEqual((self.folder / "run/plan.toml").read_bytes(), before)
        self.assertIsNone(self.run_end("run"), "it is the first job's")
        self.assertIsNone(job.poll())
        os.kill(self.pids(job)[0], signal.SIGKILL)
        job.wait(60)
        third = self.vpp("train", self.plan(DIGITS), "--set", "run.dir=run", ranks=2)
        self.assertEqual(third.returncode, 0, third.stderr)

    def test_a_lock_that_cannot_be_had_is_not_another_job(self):
        options = [item for setting in ("run.dir=run", "train.steps=2", "pipeline.num_stages=1")
                   for item in ("--set", setting)]
        for error, code in ((37, 73), (4, 0)):  # ENOLCK, EINTR
            fault = {"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": f"-1 flock run/.lock 1 2 {error} 0"}
            done = self.vpp("train", self.plan(DIGITS), *options, environment=fault)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual("cannot lock run/.lock: No locks available; use a disk whose file system has locks (flock)"
                             in done.stderr, code == 73, done.stderr)

    def test_tokens_never_lie_beside_the_index_of_others(self):
        (self.folder / "old.txt").write_text("an old text")
        (self.folder / "new.txt").write_text("a newer, longer text")
        for file in ("out.bin", "out.idx"):
            made = self.vpp("data", "make", "out.bin", "old.txt", "--overwrite")
            self.assertEqual(made.returncode, 0, made.stderr)
            fault = {"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": f"-1 rename {file} 1 1 5 0"}
            done = self.vpp("data", "make", "out.bin", "new.txt", "--overwrite", environment=fault)
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertFalse((self.folder / "out.bin").exists(), "no tokens at all stand there")

    def test_a_second_job_measures_nothing_into_the_first_ones_folder(self):
        arguments = ("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", "train.steps=100000",
                     "--set", "pipeline.split_method=AUTO")
        job = self.start(*arguments, ranks=2)
        self.wait_for_step(job, "run", 2)
        costs = self.folder / "run/costs.json"
        before = costs.read_bytes()
        second = self.vpp(*arguments, "--set", "pipeline.num_microbatches=2", ranks=2)
        self.assertEqual(second.returncode, 73, second.stderr)
        self.assertIn(f"is held by process {self.pids(job)[0]} on ", second.stderr)
        self.assertEqual(costs.read_bytes(), before)
        self.assertIsNone(job.poll())

    def test_a_training_that_is_refused_changes_nothing(self):
        arguments = ("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", "train.steps=3")
        self.assertEqual(self.vpp(*arguments, ranks=2).returncode, 0)
        before = files_of(self.folder / "run")
        for code, more in ((77, ("--set", "train.seed=5")), (2, ("--set", "train.steps=4", "--profile", "2")),
                           (2, ("--set", "checkpoint.resume=no", "--profile", "10..12"))):
            done = self.vpp(*arguments, *more, ranks=2)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(files_of(self.folder / "run"), before)
        done = self.vpp(*arguments, "--set", "train.steps=2", "--profile", "2", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing to do", done.stderr)

    def test_wrong_number_of_ranks(self):
        done = self.vpp("train", self.plan(DIGITS), ranks=3)
        self.assertEqual(done.returncode, 69)
        self.assertEqual(done.stderr.count("vpp: error"), 1, done.stderr)

    def test_what_the_first_rank_has_to_say_is_heard_though_it_starts_late(self):
        """mpirun ends a job with the first process that ends."""
        late = '[ "$OMPI_COMM_WORLD_RANK" != 0 ] || sleep 1; exec "$0" "$@"'
        command = self.command(("train", self.plan(DIGITS)), 3)
        command[-3:-3] = ["sh", "-c", late]
        done = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 69)
        self.assertEqual(done.stderr.count("vpp: error"), 1, done.stderr)


class Signals(RunningCase):
    """A signal saves and stops; the same command goes on to the bits of a run that nobody stopped."""

    def setUp(self):
        super().setUp()
        self.steps = 150
        self.text = self.plan(DIGITS)

    def arguments(self, run: str, *settings: str) -> list[str]:
        listed = (f"run.dir={run}", f"train.steps={self.steps}", *settings)
        return ["train", self.text, *(item for setting in listed for item in ("--set", setting))]

    def finish(self, run: str, *settings: str, ranks: int = 2) -> None:
        """The rest of a run, and the comparison with a whole one."""
        for name in (run, "whole"):
            done = self.vpp(*self.arguments(name, *settings), ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.bits(run)), self.steps)
        self.assertEqual(self.bits(run), self.bits("whole"))

    def wait_until_it_listens(self, job, ranks: int) -> None:
        deadline = time.monotonic() + 60
        mask = 1 << (signal.SIGUSR1 - 1)
        while True:
            self.assertLess(time.monotonic(), deadline)
            statuses = [proc_text(pid, "status") for pid in self.pids(job)]
            caught = [int(mark, 16) for text in statuses for mark in re.findall(r"SigCgt:\s*([0-9a-f]+)", text)]
            if len(caught) == ranks and all(bits & mask for bits in caught):
                return
            time.sleep(0.005)

    def test_to_mpirun_or_to_any_rank(self):
        for target in ("mpirun", 0, 1):
            with self.subTest(target=target):
                before = len(self.bits("run"))
                job = self.start(*self.arguments("run", "checkpoint.every=1000"), ranks=2, environment=SLOW_DATA)
                self.wait_for_step(job, "run", before + 5)
                os.kill(job.pid if target == "mpirun" else self.pids(job)[target], signal.SIGUSR1)
                self.assertEqual(job.wait(60), 85)
                self.assertIn(f"stopped after step {len(self.bits('run'))}", (self.folder / "err").read_text())
        self.finish("run", "checkpoint.every=1000")

    def test_while_it_loads(self):
        for _ in range(3 if FULL else 2):
            job = self.start(*self.arguments("run"), ranks=2, environment=SLOW_DATA)
            self.wait_until_it_listens(job, 2)
            os.kill(job.pid, signal.SIGUSR1)
            self.assertEqual(job.wait(60), 85)
            self.assertLessEqual(len(self.bits("run")), 10)
        self.finish("run")

    def test_while_it_evaluates_and_saves(self):
        draw = random.Random(5)
        self.steps = 50
        settings = ("train.eval_every=1", "checkpoint.every=1")
        for _ in range(4 if FULL else 2):
            before = len(self.bits("run"))
            job = self.start(*self.arguments("run", *settings), ranks=2, environment=SLOW_DATA)
            self.wait_for_step(job, "run", before + 1)
            time.sleep(draw.random() * 0.1)
            os.kill(job.pid, signal.SIGUSR1)
            self.assertEqual(job.wait(60), 85)
        self.finish("run", *settings)

    def test_a_second_of_grace_under_a_bare_mpirun(self):
        for number in (signal.SIGTERM, signal.SIGINT) if FULL else (signal.SIGTERM,):
            before = len(self.bits("run"))
            job = self.start(*self.arguments("run", "checkpoint.every=100"), ranks=2, environment=SLOW_DATA)
            self.wait_for_step(job, "run", before + 12)
            os.kill(job.pid, number)
            self.assertNotEqual(job.wait(60), 0)
        self.finish("run", "checkpoint.every=100")

    def test_a_closed_terminal(self):
        settings = ("pipeline.num_stages=1", "checkpoint.every=1000")
        job = self.start(*self.arguments("run", *settings), ranks=0, environment=SLOW_DATA)
        self.wait_for_step(job, "run", 2)
        os.kill(job.pid, signal.SIGHUP)
        self.assertEqual(job.wait(60), 85)
        step = len(self.bits("run"))
        self.assertTrue((self.folder / f"run/checkpoints/step-{step:08}").is_dir())
        with self.subTest("nohup"):
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which the job inherits
            try:
                job = self.start(*self.arguments("run", *settings), ranks=0, environment=SLOW_DATA)
            finally:
                signal.signal(signal.SIGHUP, signal.SIG_DFL)
            self.wait_for_step(job, "run", step + 2)
            os.kill(job.pid, signal.SIGHUP)
            self.assertEqual(job.wait(60), 0)
            self.assertEqual(len(self.bits("run")), self.steps)

    def test_a_second_interrupt_ends_at_once(self):
        codes = set()
        for i in range(5):
            settings = ("pipeline.num_stages=1", "train.global_batch_size=1024")
            job = self.start(*self.arguments(f"run{i}", *settings), ranks=0)
            self.wait_for_step(job, f"run{i}", 1)
            os.kill(job.pid, signal.SIGINT)
            while int(re.search(r"ShdPnd:\s*([0-9a-f]+)", proc_text(job.pid, "status"))[1], 16):
                time.sleep(0.001)
            os.kill(job.pid, signal.SIGINT)
            codes.add(job.wait(60))
        self.assertLessEqual(codes, {85, 130})
        self.assertIn(130, codes)


class Outputs(Case):
    """Commands of one process, while they read or write."""

    def test_a_report_of_metrics_that_are_cut_while_they_are_read(self):
        metrics = self.record_run("run", [8, 7, 6]) / "metrics.jsonl"
        size = metrics.stat().st_size
        slow = {"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": "0 pread metrics.jsonl 1 1 0 2000"}
        job = self.start("report", "run", ranks=0, environment=slow)
        while not has_open(job.pid, metrics):
            self.assertIsNone(job.poll())
        time.sleep(0.2)  # until it reads
        os.truncate(metrics, 10)
        self.assertEqual(job.wait(60), 0)
        self.assertIn(f"metrics.jsonl ends at byte 10, but {size - 10} bytes at 10 are wanted",
                      (self.folder / "err").read_text())

    def test_a_signal_leaves_nothing_of_what_was_begun(self):
        (self.folder / "text").write_text("a text\n")
        self.assertEqual(self.vpp("init", "digits-cnn", "made").returncode, 0)
        export = ("export", "made/plan.toml", "--initial-weights", "--safetensors", "w", "--torchscript", "m")
        before = set(os.listdir(self.folder)) | {"out", "err"}
        slow = {"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": "0 fsync .tmp- 1 1000000 0 60000"}
        for arguments in (("init", "digits-cnn", "new"), ("data", "make", "t.bin", "text"), export):
            for number in (signal.SIGINT, signal.SIGTERM):
                with self.subTest(command=arguments[0], number=number):
                    job = self.start(*arguments, ranks=0, environment=slow)
                    while not any(".tmp-" in name for name in os.listdir(self.folder)):
                        self.assertIsNone(job.poll(), (self.folder / "err").read_text())
                    os.kill(job.pid, number)
                    self.assertEqual(job.wait(60), -number)
                    self.assertEqual(set(os.listdir(self.folder)), before)


if __name__ == "__main__":
    main()
