"""Saves that are killed: at every stop point (--all) or at some drawn ones the run goes on and ends with the bits of a
run that nobody killed. With one rank and with four."""

import pathlib
import random
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints, final  # noqa: E402
from vpp_process import DIGITS, FULL, Case, main  # noqa: E402

ALL = "--all" in sys.argv
DRAWN = 4 if FULL else 2
SETTINGS = ["train.steps=4", "checkpoint.every=2", "checkpoint.keep=1", "report.every=1000"]


class KilledSaves(Case):
    def run_job(self, run: str, ranks: int, stop_point: str = ""):
        settings = [*SETTINGS, f"pipeline.num_stages={ranks}", f"run.dir={run}"]
        arguments = ["train", self.plan(DIGITS), *(item for setting in settings for item in ("--set", setting))]
        return self.vpp(*arguments, ranks=ranks if ranks > 1 else 0, environment={"VPP_STOP_POINT": stop_point})

    def remove(self, run: str) -> None:
        shutil.rmtree(self.folder / run, ignore_errors=True)

    def check(self, ranks: int) -> None:
        whole = self.run_job("whole", ranks, "0:0")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        named = re.findall(r"vpp: rank (\d+): stop point (\d+), (\S+)", whole.stderr)
        points = [(int(rank), int(number)) for rank, number, _ in named]
        self.assertEqual({rank for rank, _ in points}, set(range(ranks)))
        print(f"{ranks} ranks: {len(points)} stop points", flush=True)
        if not ALL:
            # Behind the last commit too, where no other save comes that would clear away.
            last = [(int(rank), int(number)) for rank, number, name in named if name.startswith("discard.")][-1]
            points = [*random.Random(ranks).sample(points, DRAWN), last]
        for rank, number in points:
            with self.subTest(ranks=ranks, rank=rank, number=number):
                self.remove("run")
                killed = self.run_job("run", ranks, f"{rank}:{number}")
                self.assertNotEqual(killed.returncode, 0)
                self.assertIn(f"vpp: rank {rank}: stop point {number}, ", killed.stderr)
                done = self.run_job("run", ranks)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.bits("run"), self.bits("whole"))
                self.assertEqual(final(self.folder / "run"), final(self.folder / "whole"))
                left = [path.name for path in (self.folder / "run/checkpoints").iterdir()]
                self.assertEqual(left, [checkpoints(self.folder / "run")[-1].name])

    def test_of_one_rank(self):
        self.check(1)

    def test_of_four_ranks(self):
        self.check(4)

    def test_the_control_another_seed_has_other_bits(self):
        for run, seed in (("one", 1), ("other", 2)):
            done = self.vpp("train", self.plan(DIGITS), "--set", "train.steps=2", "--set", "pipeline.num_stages=1",
                            "--set", f"run.dir={run}", "--set", f"train.seed={seed}")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(final(self.folder / "one"), final(self.folder / "other"))


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--all"]
    main()
