"""Hosts that share no disk: two folders play two hosts, since run.dir is relative to the folder that a rank starts in.
Each keeps its own shards; resumes find what the folders hold together, and say what is missing and who was asked."""

import fcntl
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints, tensors  # noqa: E402
from vpp_process import DIGITS, ENVIRONMENT, FULL, MPIRUN, VPP, Case, main  # noqa: E402

ALL = "--all" in sys.argv
SETTINGS = ("run.dir=run", "checkpoint.every=2", "checkpoint.keep=2", "report.every=1000")
INTERLEAVED = "pipeline.schedule_type=INTERLEAVED_1F1B"
SHARDS = ("shard-00000.safetensors", "shard-00001.safetensors")


class Folders(Case):
    """Hosts a, b and c: folders in which ranks start."""

    def setUp(self):
        super().setUp()
        self.config = self.plan(DIGITS)
        for host in "abc":
            (self.folder / host).mkdir()

    def run_on(self, hosts, command: str, *arguments: str, settings: tuple[str, ...] = (),
               stop_point: str = "") -> subprocess.CompletedProcess:
        """A rank on each of the hosts: "ab" are two ranks in two folders, "aa" two in one."""
        words = [command, self.config, *(w for s in (*SETTINGS, *settings) for w in ("--set", s)), *arguments]
        parts = []
        for host in hosts:
            parts += [":"] if parts else []
            parts += ["-np", "1", "-wdir", str(self.folder / host), VPP, *words]
        return subprocess.run([MPIRUN, "-q", "--oversubscribe", *parts], cwd=self.folder, text=True,
                              env=ENVIRONMENT | {"VPP_STOP_POINT": stop_point}, capture_output=True, timeout=120)

    def train(self, hosts, steps: int, *settings: str, stop_point: str = "") -> str:
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

    def together(self, step: int, hosts="ab") -> dict[str, str]:
        """The tensors of all parts."""
        found: dict[str, str] = {}
        for host in hosts:
            found |= tensors(self.checkpoint(host, step))
        return found

    def whole(self, steps: int) -> dict[str, str]:
        """The tensors of an unbroken run whose ranks share a folder."""
        (self.folder / "whole").mkdir()
        self.assertNotIn("do not share", self.train(["whole", "whole"], steps))
        return tensors(self.checkpoint("whole", steps))

    def bits(self, run: str) -> list[tuple]:
        return super().bits(f"{run}/run")


class Saves(Folders):
    def test_each_host_keeps_its_own_shards_and_a_resume_has_the_bits(self):
        whole = self.whole(8)
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
        self.assertNotIn(" gets shard", said)
        self.assertEqual(self.together(8), whole)
        self.assertEqual(self.bits("a"), self.bits("whole"))
        for host in "ab":
            self.assertEqual([path.name for path in checkpoints(self.run_folder(host))],
                             ["step-00000006", "step-00000008"], "pruned on each host")
            self.assertEqual([path.name for path in self.run_folder(host).glob(".rank-*")], [])
        self.assertFalse((self.run_folder("b") / "metrics.jsonl").exists(), "rank 0 writes them")

    def test_every_folder_is_one_jobs(self):
        self.run_folder("b").mkdir()
        with (self.run_folder("b") / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = self.run_on("ab", "train", settings=("train.steps=2",))
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertIn("rank 1: run/.lock is held by", done.stderr)


class Loads(Folders):
    def test_ranks_that_change_hosts_or_layout_get_the_shards_that_they_need(self):
        whole = self.whole(6)
        self.train("ab", 4)
        for run, (hosts, settings) in enumerate((("ba", ()), ("ab", ("pipeline.virtual_chunks=2", INTERLEAVED)),
                                                 ("bac", ("pipeline.num_stages=3",)))):
            with self.subTest(hosts=hosts, settings=settings):
                for host in "abc":
                    shutil.copytree(self.folder / host, self.folder / f"{host}{run}", dirs_exist_ok=True)
                said = self.train([f"{host}{run}" for host in hosts], 6, *settings)
                self.assertIn("resumed after step 4 from ", said)
                self.assertNotIn("skipped", said)
                self.assertGreaterEqual(said.count(" gets shard-"), 2, said)
                self.assertEqual(self.together(6, [f"{host}{run}" for host in set(hosts)]), whole)

    def test_a_folder_with_the_copied_shard_is_whole(self):
        whole = self.whole(6)
        self.train("ab", 4)
        shutil.copyfile(self.checkpoint("b", 4) / SHARDS[1], self.checkpoint("a", 4) / SHARDS[1])
        said = self.train("aa", 6)
        self.assertIn("resumed after step 4", said)
        self.assertNotIn("do not share", said)
        self.assertEqual(self.together(6, "a"), whole)

    def test_a_shard_that_is_damaged_or_gone_costs_that_checkpoint_only(self):
        whole = self.whole(6)
        for i, (damage, text) in enumerate((
                (lambda shard: shard.unlink(), "rank 1 on {host}: it is not there"),
                (lambda shard: shard.write_bytes(shard.read_bytes()[:-1] + b"x"), "shard-00001.safetensors: damaged"),
                (lambda shard: shutil.rmtree(shard.parent), "rank 1 on {host}: it has no such checkpoint"))):
            hosts = [f"a{i}", f"b{i}"]
            for host in hosts:
                (self.folder / host).mkdir()
            self.train(hosts, 4)
            damage(self.checkpoint(hosts[1], 4) / SHARDS[1])
            said = self.train(hosts, 6)
            self.assertIn("checkpoint skipped: run/checkpoints/step-00000004, save ", said)
            self.assertIn("no run folder of the job holds a whole shard-00001.safetensors (rank 0 on ", said)
            self.assertIn(text.format(host=socket.gethostname()), said)
            self.assertIn("resumed after step 2", said)
            self.assertEqual(self.together(6, hosts), whole)

    def test_evaluation_and_named_checkpoints(self):
        self.whole(4)
        self.train("ab", 4)
        expected = self.loss(["whole", "whole"])
        self.assertEqual(self.loss("ab"), expected)
        self.assertEqual(self.loss("ba"), expected)
        self.assertEqual(self.loss("ab", "--checkpoint", "run/checkpoints/step-00000004"), expected)
        self.assertNotEqual(self.loss("ab", "--checkpoint", "run/checkpoints/step-00000002"), expected, "the control")
        shutil.rmtree(self.checkpoint("b", 2))
        (self.checkpoint("a", 2) / SHARDS[1]).unlink(missing_ok=True)
        for command, arguments in (("eval", ("--checkpoint", "run/checkpoints/step-00000002")),
                                   ("train", ("--set", "checkpoint.resume=run/checkpoints/step-00000002"))):
            done = self.run_on("ab", command, *arguments, settings=("train.steps=4",))
            self.assertEqual(done.returncode, 66, done.stderr)
            self.assertIn("no run folder of the job holds a whole shard-00001.safetensors (rank 0 on "
                          f"{socket.gethostname()}: it is not there; rank 1 on {socket.gethostname()}: ", done.stderr)

    def loss(self, hosts, *arguments: str) -> float:
        done = self.run_on(hosts, "eval", *arguments, "--json", settings=("train.steps=4",))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["loss"]

    def test_a_part_is_never_taken_for_the_whole(self):
        self.train("ab", 2)
        text = "shard-00001.safetensors: is missing: this folder holds 1 of 2 shards; the run folder of another host"
        part = "run/checkpoints/step-00000002"
        for code, arguments in ((65, ("checkpoint", "verify", "run")), (65, ("checkpoint", "show", part)),
                                (65, ("export", self.config, "--safetensors", "w", "--checkpoint", part)),
                                (65, ("eval", self.config, "--set", "pipeline.num_stages=1", "--checkpoint", part)),
                                (66, ("export", self.config, "--safetensors", "w", "--set", "run.dir=run")),
                                (0, ("checkpoint", "list", "run"))):
            done = subprocess.run([VPP, *arguments], cwd=self.folder / "a", env=ENVIRONMENT, text=True,
                                  capture_output=True, timeout=60)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(text, done.stdout + done.stderr)
            self.assertNotIn("whole", done.stdout)


class KilledSaves(Folders):
    """A rank dies at a stop point of a save; what is then in the two folders is resumed."""

    def points(self) -> list[tuple[int, int, str]]:
        said = self.train(self.hosts("points"), 4, "checkpoint.keep=1", stop_point="0:0")
        found = re.findall(r"vpp: rank (\d+): stop point (\d+), ([\w.]+)", said)
        return [(int(rank), int(number), name) for rank, number, name in found]

    def hosts(self, name: str) -> list[str]:
        hosts = [f"a_{name}", f"b_{name}"]
        for host in hosts:
            (self.folder / host).mkdir()
        return hosts

    def test_between_the_commits_of_two_hosts(self):
        whole = self.whole(4)
        points = self.points()
        self.assertEqual({rank for rank, _, name in points if name == "commit.renamed"}, {0, 1})
        print(f"{len(points)} stop points", flush=True)
        if not ALL:
            second = [p for p in points if p[1] > len(points) // 4]  # of the second save: there is an old one
            names = ("commit.temporary_synced", "commit.renamed") if FULL else ("commit.renamed",)
            points = [p for p in second if p[2] in names or p[::2] == (1, "discard.renamed")]
        resumed = set()
        for rank, number, name in points:
            with self.subTest(rank=rank, number=number, name=name):
                hosts = self.hosts(f"{rank}_{number}")
                settings = ("train.steps=4", "checkpoint.keep=1")
                killed = self.run_on(hosts, "train", settings=settings, stop_point=f"{rank}:{number}")
                self.assertNotEqual(killed.returncode, 0)
                newest = {path.name for host in hosts for path in checkpoints(self.run_folder(host))[-1:]}
                said = self.train(hosts, 4, "checkpoint.keep=1")
                self.assertEqual(self.together(4, hosts), whole)
                found = re.search(r"resumed after step (\d)", said)
                resumed_from = found.group(1) if found else "0"
                resumed.add(resumed_from)
                if len(newest) > 1:
                    self.assertIn("checkpoint skipped: run/checkpoints/step-00000004, save ", said)
                    self.assertEqual(resumed_from, "2")
                for host in hosts:
                    self.assertEqual(checkpoints(self.run_folder(host))[-1].name, "step-00000004")
        self.assertLessEqual({"2", "4"}, resumed, "before and after the last commit")


if __name__ == "__main__":
    sys.argv = [argument for argument in sys.argv if argument != "--all"]
    main()
