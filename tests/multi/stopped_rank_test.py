"""One of four ranks is stopped, twenty times, at a random moment: the job ends within the deadline and two seconds, and
names the right rank."""

import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, Case, main  # noqa: E402

TIMES = 20
DEADLINE_S = 3


class StoppedRank(Case):
    def test_is_named_every_time(self):
        draw = random.Random(11)
        worst = 0.0
        for number in range(TIMES):
            rank = draw.randrange(4)
            with self.subTest(number=number, rank=rank):
                job = self.start("train", self.plan(DIGITS), "--set", "train.steps=1000000",
                                 "--set", f"run.dir=run{number}", "--set", f"run.deadline_floor_s={DEADLINE_S}",
                                 "--set", "run.deadline_factor=1", "--set", "pipeline.num_stages=4",
                                 "--set", "checkpoint.every=20", "--set", "train.eval_every=50", ranks=4)
                while len(self.bits(f"run{number}")) < 3:
                    time.sleep(0.05)
                time.sleep(3 * draw.random())
                os.kill(self.pids(job)[rank], signal.SIGSTOP)
                start = time.monotonic()
                self.assertEqual(job.wait(60), 75)
                seconds = time.monotonic() - start
                worst = max(worst, seconds)
                error = (self.folder / "err").read_text()
                self.assertIn(f"rank {rank} is silent", error)
                self.assertLess(seconds, DEADLINE_S + 2)
        print(f"{TIMES} ranks were stopped; the slowest end took {worst:.1f} s with a deadline of {DEADLINE_S} s")


if __name__ == "__main__":
    main()
