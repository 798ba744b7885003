"""Jobs whose ranks send by NCCL, on cards or on soft ones: replicas, resumes, and how such a job ends. VPP_BINARY is a
vpp that has a card for each rank, or own_host.sh."""

import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ROOT, Case, main  # noqa: E402

NCCL = ("--set", "mesh.transport=nccl")


class NcclJobs(Case):
    def train(self, run: str, *settings: str, options: tuple[str, ...] = ()):
        words = (word for one in (f"run.dir={run}", "train.steps=8", *settings) for word in ("--set", one))
        return self.vpp("train", self.plan(DIGITS), *NCCL, *options, *words, ranks=2)

    def start_endless(self):
        """A job that has made steps of which some were replayed."""
        job = self.start("train", self.plan(DIGITS), *NCCL, "--set", "train.steps=100000", "--set", "run.dir=run",
                         "--set", "run.deadline_floor_s=10", "--set", "run.deadline_factor=1", ranks=2)
        while sum(line["event"] == "step" for line in self.metrics("run")) < 5:
            self.assertIsNone(job.poll(), (self.folder / "err").read_text())
            time.sleep(0.02)
        return job

    def test_replicas_have_the_bits_of_one_device(self):
        for dp, zero1 in ((2, "false"), (2, "true"), (4, "true")):
            with self.subTest((dp, zero1)):
                done = self.vpp("verify", self.plan(DIGITS), *NCCL, "--steps", "10", "--set", f"mesh.dp={dp}", "--set",
                                f"mesh.zero1={zero1}", "--set", "mesh.bucket_bytes=2048", "--set",
                                f"mesh.pp={4 // dp}", "--set", f"pipeline.num_stages={4 // dp}", ranks=4, timeout=300)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(", CUDA ", done.stdout)
                self.assertIn("bitwise equal: all of it", done.stdout)
                self.assertNotIn("through the host", done.stdout)

    def test_a_resume_by_mpi_has_the_bits_of_the_unbroken_run(self):
        done = self.train("whole", options=("--profile", "8..8"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("values go from card to card by NCCL", done.stdout + done.stderr)
        events = json.loads((self.folder / "whole/profile/trace-step8.json").read_text())["traceEvents"]
        lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual({"card: SEND_F to PP 1", "card: RECV_F from PP 0"}, lanes, "nothing goes over links")
        self.assertEqual(self.train("run", "train.steps=5").returncode, 0)
        done = self.train("run", "mesh.transport=mpi")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bits("run"), self.bits("whole"))
        self.assertEqual(self.train("other", "train.seed=3").returncode, 0)
        self.assertNotEqual(self.bits("other"), self.bits("whole"))

    def test_an_error_of_a_rank_is_said_and_not_what_nccl_says_of_it(self):
        labels = bytearray((ROOT / "models/data/digits_train_label.npy").read_bytes())
        labels[-8:] = (10).to_bytes(8, "little")
        (self.folder / "labels.npy").write_bytes(labels)
        done = self.train("run", f"data.train.label={self.folder}/labels.npy", "train.steps=60")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("labels.npy", done.stderr)
        self.assertNotIn("NCCL has failed", done.stderr)

    def test_a_rank_that_stands_still_is_named(self):
        job = self.start_endless()
        os.kill(self.pids(job)[1], signal.SIGSTOP)
        self.assertEqual(job.wait(60), 75)
        said = (self.folder / "err").read_text()
        self.assertIn("rank 1", said)
        self.assertNotIn("NCCL has failed", said)

    def test_a_killed_rank_ends_the_job(self):
        job = self.start_endless()
        os.kill(self.pids(job)[1], signal.SIGKILL)
        self.assertEqual(job.wait(60), 137)


if __name__ == "__main__":
    main()
