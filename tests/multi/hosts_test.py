"""Hosts that fail: disks that are full or block, clocks that jump, memory that is used up, ranks that disagree. What a
job says, how it ends, and what is left. tests/support/faults.cpp makes the faults."""

import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints, files_of, final  # noqa: E402
from vpp_process import DIGITS, ENVIRONMENT, FAULTS, MPIRUN, ROOT, VPP, Case, main  # noqa: E402

ENOSPC, EIO, EDQUOT = 28, 5, 122


class FaultCase(Case):
    def train(self, run: str, *settings: str, ranks: int = 2, **environment: str):
        listed = (f"run.dir={run}", "train.steps=12", "checkpoint.every=3", *settings)
        arguments = ["train", self.plan(DIGITS), *(item for setting in listed for item in ("--set", setting))]
        return self.vpp(*arguments, ranks=ranks, environment={"LD_PRELOAD": FAULTS, **environment})

    def disk(self, *words) -> dict[str, str]:
        return {"VPP_DISK_FAULT": " ".join(str(word) for word in words)}

    def names(self, run: str) -> list[str]:
        return [path.name for path in checkpoints(self.folder / run)]


class Disks(FaultCase):
    def test_a_save_that_fails_costs_that_save_only(self):
        self.assertEqual(self.train("whole").returncode, 0)
        for i, (rank, call, error, text) in enumerate([
                (0, "write", ENOSPC, "No space left on device"), (1, "write", ENOSPC, "No space left on device"),
                (1, "fsync", EIO, "Input/output error"), (0, "rename", EIO, "Input/output error"),
                (0, "mkdir", EDQUOT, "Disk quota exceeded")]):
            with self.subTest(rank=rank, call=call):
                done = self.train(f"run{i}", **self.disk(rank, call, "/checkpoints/", 1, 1, error, 0))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("the save of step 3 failed (", done.stderr)
                self.assertIn(text, done.stderr)
                self.assertEqual(self.names(f"run{i}"), ["step-00000006", "step-00000009", "step-00000012"])
                self.assertEqual(final(self.folder / f"run{i}"), final(self.folder / "whole"))
                left = [path.name for path in (self.folder / f"run{i}/checkpoints").iterdir()]
                self.assertEqual(sorted(left), self.names(f"run{i}"))

    def test_too_many_failures_end_the_job_and_leave_what_was_saved(self):
        done = self.train("run", "checkpoint.max_failures=2",
                          **self.disk(1, "write", "/checkpoints/.tmp-step-00000006", 1, 1, ENOSPC, 0))
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.train("full", "checkpoint.max_failures=2", "train.steps=20",
                          **self.disk(0, "rename", "/checkpoints/step-", 2, 1000, ENOSPC, 0))
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("2 saves in a row failed (checkpoint.max_failures)", done.stderr)
        self.assertEqual(self.names("full"), ["step-00000003"])
        again = self.train("full", "train.steps=20")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("resumed after step 3", again.stderr)

    def test_what_a_dead_save_left_takes_no_room_from_the_next(self):
        self.assertEqual(self.train("run", "train.steps=6").returncode, 0)
        folder = self.folder / "run/checkpoints"
        left = folder / ".tmp-step-00000009-dead"
        left.mkdir()
        one = sum(file.stat().st_size for file in (folder / "step-00000006").iterdir())
        size = sum(file.stat().st_size for file in (self.folder / "run").rglob("*") if file.is_file()) + 4 * one
        shard = left / "shard-00000.safetensors"
        shard.touch()
        os.truncate(shard, 4 * one)
        done = self.train("run", VPP_DISK_SIZE=f"run {size}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("failed", done.stderr)
        self.assertFalse(left.exists())
        os.truncate(folder / "step-00000012/shard-00000.safetensors", 4 * one)
        before = files_of(self.folder / "run")
        full = self.train("run", VPP_DISK_SIZE=f"run {size}")
        self.assertEqual(full.returncode, 74, full.stderr)
        self.assertIn("a checkpoint takes about ", full.stderr)
        self.assertEqual(files_of(self.folder / "run"), before)

    def test_a_disk_without_room_for_the_plan_leaves_what_was_there(self):
        self.assertEqual(self.train("run").returncode, 0)
        before = files_of(self.folder / "run")
        done = self.train("run", "train.steps=15", **self.disk(0, "write", "run/plan.toml.tmp", 1, 1, ENOSPC, 0))
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertEqual(files_of(self.folder / "run"), before)

    def test_what_a_dead_save_left_and_cannot_be_removed_is_said(self):
        self.assertEqual(self.train("run", "train.steps=6").returncode, 0)
        newest = checkpoints(self.folder / "run")[-1]
        shutil.copytree(newest, newest.with_name(newest.name + ".old"))
        done = self.train("run", **self.disk(0, "rename", "/.trash-", 1, 1, EIO, 0))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("what dead saves left stays: cannot rename run/checkpoints/step-00000006.old to ", done.stderr)
        self.assertFalse(newest.with_name(newest.name + ".old").exists(), "the next save comes to it")

    def test_a_checkpoint_that_the_disk_does_not_give_is_not_skipped(self):
        self.assertEqual(self.train("run", "train.steps=6").returncode, 0)
        for file in ("manifest.json", "shard-00001.safetensors"):
            with self.subTest(file=file):
                path = f"run/checkpoints/step-00000006/{file}"
                done = self.train("run", **self.disk(0, "open", path, 1, 1, EIO, 0))
                self.assertEqual(done.returncode, 74, done.stderr)
                self.assertIn(f"cannot open {path}: Input/output error; no older checkpoint is taken", done.stderr)
                self.assertEqual(self.names("run"), ["step-00000003", "step-00000006"])
                self.assertFalse((self.folder / "run/set-aside").exists())
        done = self.train("run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resumed after step 6", done.stderr)

    def test_when_no_checkpoint_is_whole_a_person_decides(self):
        self.assertEqual(self.train("run", "train.steps=6").returncode, 0)
        for checkpoint in checkpoints(self.folder / "run"):
            (checkpoint / "shard-00000.safetensors").write_bytes(b"")
        done = self.train("run")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("run has checkpoints, and none of them is whole: run/checkpoints/step-00000006/", done.stderr)
        self.assertEqual(self.names("run"), ["step-00000003", "step-00000006"])
        done = self.train("run", "checkpoint.resume=no")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(list((self.folder / "run/set-aside").iterdir())), 2)

    def test_a_disk_that_blocks_is_named(self):
        done = self.train("run", "run.deadline_floor_s=2", "train.steps=100000", ranks=2,
                          **self.disk(1, "fsync", "/checkpoints/", 2, 1, 0, 600_000))
        self.assertEqual(done.returncode, 75, done.stderr)
        self.assertIn("rank 1: the disk of run does not answer: this rank has waited", done.stderr)
        self.assertEqual(self.names("run"), ["step-00000003"])

    def test_metrics_and_log_are_not_worth_a_job(self):
        done = self.train("run", **self.disk(0, "write", "/run/metrics.jsonl", 3, 1000, ENOSPC, 0))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("cannot write to run/metrics.jsonl"), 1, done.stderr)
        self.assertEqual(len(self.bits("run")), 2)

    def test_a_run_folder_that_cannot_be_written_is_said_before_training(self):
        for folder in ("/proc/run", "/dev/null/run"):
            done = self.train(folder)
            self.assertEqual(done.returncode, 73, done.stderr)
            self.assertIn("cannot make the run folder", done.stderr)

    def test_a_damaged_newest_checkpoint_is_skipped_and_said(self):
        self.assertEqual(self.train("run").returncode, 0)
        expected = final(self.folder / "run")
        damages = {
            "cut": lambda shard: os.truncate(shard, shard.stat().st_size // 2),
            "missing": lambda shard: shard.unlink(),
            "extra": lambda shard: (shard.parent / "shard-00007.safetensors").write_bytes(b"x"),
            "of another step": lambda shard: shard.write_bytes(
                (checkpoints(self.folder / "run")[-2] / shard.name).read_bytes()),
        }
        for name, damage in damages.items():
            with self.subTest(damage=name):
                damage(checkpoints(self.folder / "run")[-1] / "shard-00001.safetensors")
                done = self.train("run")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("checkpoint skipped: ", done.stderr)
                self.assertIn("resumed after step 9", done.stderr)
                self.assertEqual(final(self.folder / "run"), expected)


class Clocks(FaultCase):
    def test_a_wall_clock_that_jumps_changes_nothing(self):
        self.assertEqual(self.train("whole").returncode, 0)
        for i, seconds in enumerate((10 * 365 * 86400, -86400)):
            done = self.train(f"run{i}", "train.steps=12", VPP_CLOCK_JUMP=str(seconds))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(final(self.folder / f"run{i}"), final(self.folder / "whole"))


class Numbers(FaultCase):
    def test_what_is_not_finite_is_named_and_the_checkpoint_stays(self):
        settings = ("optimizer.kind=sgd", "optimizer.lr=1e30", "checkpoint.every=1")
        done = self.train("run", *settings)
        self.assertEqual(done.returncode, 79, done.stderr)
        self.assertRegex(done.stderr, r"step 2: the loss is \S+ and the gradient norm \S+; first not finite is the "
                                      r"(tensor|gradient of) '\S+' of stage \d, F of microbatch 0 \(samples \d+, ")
        self.assertEqual(self.names("run"), ["step-00000001"])
        skipped = self.train("skipped", *settings, "train.on_nonfinite=skip")
        self.assertEqual(skipped.returncode, 79, skipped.stderr)
        self.assertEqual(skipped.stderr.count("; the step was skipped"), 10)
        self.assertEqual(final(self.folder / "skipped"), final(self.folder / "run") | {
            name: value for name, value in final(self.folder / "skipped").items() if name not in
            final(self.folder / "run")})

    def test_weights_that_the_last_update_has_damaged_are_not_saved(self):
        settings = ("optimizer.kind=sgd", "optimizer.lr=3e38", "model.loss_reduction=sum", "train.eval_every=0")
        done = self.train("run", *settings, "train.steps=1")
        self.assertEqual(done.returncode, 79, done.stderr)
        self.assertIn("an update up to step 1 has made the parameter '", done.stderr)
        self.assertEqual(self.names("run"), [])


class Memory(FaultCase):
    def test_a_host_without_memory_is_told_from_a_bad_model(self):
        settings = (f"model.file={ROOT}/models/out/vgg.pt", "pipeline.num_stages=1", "pipeline.num_microbatches=1",
                    "train.global_batch_size=200000", "train.steps=1", "run.dir=run")
        job = self.start("train", self.plan(DIGITS), *(word for setting in settings for word in ("--set", setting)),
                         ranks=0, limits={resource.RLIMIT_AS: 6 << 30})
        self.assertEqual(job.wait(120), 71, (self.folder / "err").read_text())
        said = (self.folder / "err").read_text()
        self.assertTrue("out of memory; use more stages" in said or "out of memory; this rank's tensors take" in said,
                        said)


class Disagreement(FaultCase):
    def both(self, first: list[str], second: list[str]):
        """Rank 0 and rank 1 get other arguments."""
        parts = [["-np", "1", VPP, "train", *arguments] for arguments in (first, second)]
        return subprocess.run([MPIRUN, "-q", "--oversubscribe", *parts[0], ":", *parts[1]], cwd=self.folder,
                              env=ENVIRONMENT, text=True, capture_output=True, timeout=120)

    def test_ranks_with_other_plans_models_or_data_end_with_76_and_both_sides(self):
        plan = self.plan(DIGITS)
        usual = [plan, "--set", "run.dir=run", "--set", "train.steps=2"]
        for name in ("image", "label"):
            part = ROOT / f"models/data/digits_val_{name}.npy"
            (self.folder / f"{name}.npy").write_bytes(part.read_bytes())
        other_data = ["--set", f"data.train.image={self.folder}/image.npy",
                      "--set", f"data.train.label={self.folder}/label.npy"]
        for other, word in ((["--set", "optimizer.lr=0.5"], 'rank 1 has "[optimizer] lr = 0.5"'),
                            (other_data, 'rank 1 has "[data] train = { image = ')):
            with self.subTest(other=other):
                done = self.both(usual, [*usual, *other])
                self.assertEqual(done.returncode, 76, done.stderr)
                self.assertIn(word, done.stderr)
        self.assertEqual(self.both(usual, usual).returncode, 0)


if __name__ == "__main__":
    main()
