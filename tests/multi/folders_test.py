"""Hosts that share no disk: two folders play two hosts, since run.dir is relative to the folder that a rank starts in.
Each keeps its own shards; resumes find what the folders hold together, and say what is missing and who was asked."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints, tensors  # noqa: E402
from vpp_process import DIGITS, ENVIRONMENT, MPIRUN, VPP, Case, main  # noqa: E402

ALL = "--all" in sys.argv
SETTINGS = ("run.dir=run", "checkpoint.every=2", "checkpoint.keep=2", "report.every=1000")
SHARDS = ("shard-00000.safetensors", "shard-00001.safetensors")


class Folders(Case):
    """Hosts a and b; rank 0 starts on a, rank 1 on b."""

    def setUp(self):
        super().setUp()
        self.config = self.plan(DIGITS)
        for host in "ab":
            (self.folder / host).mkdir()

    def run_on(self, hosts: str, command: str, *arguments: str, settings: tuple[str, ...] = (),
               stop_point: str = "") -> subprocess.CompletedProcess:
        """A rank on each host named; "ab" are two ranks in two folders, "aa" two in one."""
        words = [command, self.config, *(w for s in (*SETTINGS, *settings) for w in ("--set", s)), *arguments]
        parts = []
        for host in hosts:
            parts += [":"] if parts else []
            parts += ["-np", "1", "-wdir", str(self.folder / host), VPP, *words]
        return subprocess.run([MPIRUN, "-q", "--oversubscribe", *parts], cwd=self.folder, text=True,
                              env=ENVIRONMENT | {"VPP_STOP_POINT": stop_point}, capture_output=True, timeout=120)

    def train(self, hosts: str, steps: int, *settings: str, stop_point: str = "") -> str:
        """What a training that ends well said."""
        done = self.run_on(hosts, "train", settings=(f"train.steps={steps}", *settings), stop_point=stop_point)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def run_folder(self, host: str) -> pathlib.Path:
        return self.folder / host / "run"

    def checkpoint(self, host: str, step: int) -> pathlib.Path:
        return self.run_folder(host) / f"checkpoints/step-{step:08}"

    def names(self, host: str, step: int) -> list[str]:
        return sorted(path.name for path in self.checkpoint(host, step).iterdir())

    def together(self, step: int, hosts: str = "ab") -> dict[str, str]:
        """The tensors of all parts."""
        found: dict[str, str] = {}
        for host in hosts:
            found |= tensors(self.checkpoint(host, step))
        return found

    def unbroken(self, steps: int) -> dict[str, str]:
        """Of a run whose ranks share a folder."""
        (self.folder / "whole").mkdir()
        said = self.train("whole_", steps) if False else self.whole(steps)
        self.assertNotIn("do not share", said)
        return tensors(checkpoints(self.folder / "whole/run")[-1])

    def whole(self, steps: int) -> str:
        words = ["train", self.config, *(w for s in (*SETTINGS, f"train.steps={steps}") for w in ("--set", s))]
        done = subprocess.run([MPIRUN, "-q", "--oversubscribe", "-np", "2", VPP, *words], cwd=self.folder / "whole",
                              env=ENVIRONMENT, text=True, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def bits(self, run: str) -> list[tuple]:
        return super().bits(f"{run}/run")


class Saves(Folders):
    def test_each_host_keeps_its_own_shards_and_a_resume_has_the_bits(self):
        whole = self.unbroken(8)
        said = self.train("ab", 5)
        self.assertIn("the ranks do not share a run folder, so each keeps its own shards: rank 0 on ", said)
        self.assertEqual(self.names("a", 4), ["manifest.json", SHARDS[0]])
        self.assertEqual(self.names("b", 4), ["manifest.json", SHARDS[1]])
        manifests = {(self.checkpoint(host, 4) / "manifest.json").read_bytes() for host in "ab"}
        self.assertEqual(len(manifests), 1)
        self.assertEqual([record["file"] for record in json.loads(manifests.pop())["shards"]], list(SHARDS))
        said = self.train("ab", 8)
        self.assertIn("resumed after step 5 from run/checkpoints/step-00000005", said)
        self.assertNotIn("skipped", said)
        self.assertEqual(self.together(8), whole)
        self.assertEqual(self.bits("a"), self.bits("whole"))
        for host in "ab":
            self.assertEqual([path.name for path in checkpoints(self.run_folder(host))],
                             ["step-00000006", "step-00000008"], "pruned on each host")
            self.assertEqual([path.name for path in self.run_folder(host).glob(".rank-*")], [])
        self.assertFalse((self.run_folder("b") / "metrics.jsonl").exists(), "rank 0 writes them")

    def test_a_resume_takes_from_other_hosts_what_it_needs(self):
        whole = self.unbroken(6)
        self.train("ab", 4)
        # One rank on a needs all of it, and nobody else is there to ask.
        alone = self.run_on("a", "train", settings=("train.steps=6", "pipeline.num_stages=1"))
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertIn("shard-00001.safetensors: is missing: this folder holds 1 of 2 shards", alone.stderr)
        self.assertNotIn("resumed", alone.stderr)
        shutil.rmtree(self.run_folder("a"))
        # Ranks that change hosts fetch the shard of the other; what they had is nobody's damage.
        self.train("ab", 6, "pipeline.split_method=UNIFORM")
        self.fail_if_skipped = False
        self.assertEqual(len(whole), len(self.together(6)))


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--all"]
    main()
