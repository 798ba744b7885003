"""A rank that becomes slow in the middle of a job, by signals."""

import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, Case, main  # noqa: E402


class Pace(Case):
    def test_a_rank_that_becomes_slow_is_named_and_the_job_goes_on(self):
        # A step computes far longer than the rank goes on between two stops: each step in a row is slow.
        job = self.start("train", self.plan(DIGITS), "--set", "train.steps=1000000", "--set", "run.dir=run",
                         "--set", "train.global_batch_size=4096", ranks=2)
        end = time.monotonic() + 240
        while len(self.bits("run")) < 20:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        slow = self.pids(job)[1]
        while "rank 1 is slow: it computed " not in (self.folder / "err").read_text():
            self.assertLess(time.monotonic(), end)
            os.kill(slow, signal.SIGSTOP)
            time.sleep(0.06)
            os.kill(slow, signal.SIGCONT)
            time.sleep(0.01)
        self.assertIsNone(job.poll())
        os.kill(slow, signal.SIGUSR1)
        self.assertEqual(job.wait(60), 85)


if __name__ == "__main__":
    main()
