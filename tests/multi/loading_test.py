"""Training data from a disk that is slow or blocks: what is read while others compute, how a job ends."""

import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, FAULTS, ROOT, Case, main, only_full  # noqa: E402

MICROBATCHES = 4


class LoadingCase(Case):
    def train(self, run: str, *settings: str, ranks: int, fault: str, more: tuple[str, ...] = ()):
        listed = (f"run.dir={run}", *settings)
        arguments = ["train", self.plan(DIGITS), *(item for setting in listed for item in ("--set", setting)), *more]
        # Ranks of two are bound to a core each, which their threads would share.
        environment = {"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": fault, "OMPI_MCA_hwloc_base_binding_policy": "none"}
        return self.vpp(*arguments, ranks=ranks, environment=environment)


class Slow(LoadingCase):
    def steps(self, run: str, *settings: str) -> list[list[dict]]:
        """The events of rank 0 in some steps in which reading takes far longer than computing."""
        done = self.train(run, "train.steps=8", *settings, ranks=2, more=("--profile", "4..7"),
                          fault="0 pread digits_train_image 1 1000000 0 8")
        self.assertEqual(done.returncode, 0, done.stderr)
        traces = [json.loads(path.read_text()) for path in sorted((self.folder / run / "profile").glob("trace-*"))]
        self.assertEqual(len(traces), 4)
        return [[event | {"trace": trace["otherData"]["step"]} for event in trace["traceEvents"]
                 if event["ph"] == "X" and event["pid"] == 0] for trace in traces]

    def late_reads(self, events: list[dict]) -> int:
        """How many of a step's microbatches began to be read when their forward pass had begun."""
        forward = {event["args"]["microbatch"]: event["ts"] for event in events if event["cat"] == "F"}
        self.assertEqual(forward.keys(), set(range(MICROBATCHES)))
        return sum(event["ts"] >= forward[event["args"]["microbatch"]] for event in events
                   if event["cat"] == "read" and event["args"]["step"] == event["trace"])

    def test_reading_goes_on_while_others_compute(self):
        late = 0
        longest = []
        for events in self.steps("ahead"):
            late += self.late_reads(events)
            waits = [event["dur"] for event in events if event["cat"] == "wait"]
            self.assertEqual(len(waits), MICROBATCHES)
            longest.append(max(waits))
        self.assertGreater(max(longest), 3000, "one that waits for a read shows it")
        # Of 16; where the thread has to wait for a core, F 1 may begin directly behind F 0.
        self.assertLessEqual(late, 8)
        for events in self.steps("when needed", "data.read_ahead_bytes=0"):  # the control
            self.assertEqual(self.late_reads(events), MICROBATCHES)
        self.assertEqual(self.bits("ahead"), self.bits("when needed"))

    def test_how_much_is_read_ahead_changes_no_bit(self):
        runs = {"usual": (), "little": ("data.read_ahead_bytes=1",), "nothing": ("data.read_ahead_bytes=0",)}
        for run, settings in runs.items():
            done = self.train(run, "train.steps=60", "train.eval_every=20", "checkpoint.every=25", *settings, ranks=2,
                              fault="")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.bits("usual")), 60)
        for run in runs:
            self.assertEqual(self.bits(run), self.bits("usual"))


class Stopped(LoadingCase):
    def test_a_signal_while_data_are_read_saves_and_the_rest_has_the_bits_of_a_whole_run(self):
        settings = ("train.steps=24", "pipeline.num_stages=1", "data.train.image=" + str(self.folder / "images.npy"))
        (self.folder / "images.npy").write_bytes((ROOT / "models/data/digits_train_image.npy").read_bytes())
        self.assertEqual(self.train("whole", *settings, ranks=0, fault="").returncode, 0)
        arguments = ["train", self.plan(DIGITS), *(item for setting in ("run.dir=run", *settings)
                                                   for item in ("--set", setting))]
        job = self.start(*arguments, ranks=0, environment={"LD_PRELOAD": FAULTS,
                                                           "VPP_DISK_FAULT": "0 pread /images.npy 1 1000000 0 4"})
        end = time.monotonic() + 60
        while len(self.bits("run")) < 3:
            self.assertIsNone(job.poll(), (self.folder / "err").read_text())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        os.kill(job.pid, signal.SIGUSR1)
        self.assertEqual(job.wait(60), 85, (self.folder / "err").read_text())
        self.assertLess(len(self.bits("run")), 24)
        done = self.train("run", *settings, ranks=0, fault="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bits("run"), self.bits("whole"))


class Bad(LoadingCase):
    def test_bad_data_end_the_job_where_they_are_needed_though_they_are_read_before(self):
        labels = bytearray((ROOT / "models/data/digits_train_label.npy").read_bytes())
        place = 128 + 45 * 8  # behind the header
        labels[place:place + 8] = (10).to_bytes(8, "little")
        (self.folder / "labels.npy").write_bytes(labels)
        for run, ahead in (("ahead", 1 << 26), ("when needed", 0)):
            done = self.train(run, "data.shuffle=false", f"data.train.label={self.folder}/labels.npy",
                              f"data.read_ahead_bytes={ahead}", ranks=2, fault="")
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertRegex(done.stderr, r"error: rank 1: stage 1, F of microbatch 1: \S+labels\.npy, sample 45: ")
            self.assertEqual(len(self.bits(run)), 1, "the step before the one with sample 45 is done")


class Blocked(LoadingCase):
    def test_data_that_do_not_answer_are_named(self):
        for ranks in (0, 2):
            for ahead in ((), ("data.read_ahead_bytes=1",)):
                with self.subTest(ranks=ranks, ahead=ahead):
                    start = time.monotonic()
                    done = self.train(f"run{ranks}{len(ahead)}", "train.steps=100000", "run.deadline_floor_s=3",
                                      "run.deadline_factor=1", f"pipeline.num_stages={max(1, ranks)}", *ahead,
                                      ranks=ranks, fault="0 pread digits_train_image 300 1 0 600000")
                    self.assertEqual(done.returncode, 75, done.stderr)
                    by = "rank 0: " if ranks else ""
                    self.assertRegex(done.stderr, f"vpp: error: {by}stage 0, F of microbatch [0-3]: the training data "
                                                  r"do not answer: this rank has waited [\d.]+ s for a read of step ")
                    self.assertLess(time.monotonic() - start, 60)

    @only_full
    def test_data_that_are_slow_to_open_are_said_by_one_rank(self):
        done = self.train("slow", "train.steps=1", ranks=2, fault="-1 pread digits_val_image 1 1 0 40000")
        self.assertEqual(done.returncode, 0, done.stderr)
        line = "still opening the data, 30 s so far; does the disk answer?"
        self.assertEqual(done.stderr.count(line), 1, done.stderr)

    def test_validation_data_that_do_not_answer_are_named(self):
        for ranks in (0, 2):
            with self.subTest(ranks=ranks):
                done = self.train(f"run{ranks}", "train.steps=100000", "run.deadline_floor_s=3",
                                  "run.deadline_factor=1", f"pipeline.num_stages={max(1, ranks)}",
                                  "train.eval_every=2", ranks=ranks, fault="0 pread digits_val_image 300 1 0 600000")
                self.assertEqual(done.returncode, 75, done.stderr)
                by = "rank 0: " if ranks else ""
                self.assertRegex(done.stderr, f"vpp: error: {by}stage 0, F of microbatch [0-3]: the validation data "
                                              r"do not answer: this rank has waited [\d.]+ s for a read of group \d+\.")


if __name__ == "__main__":
    main()
