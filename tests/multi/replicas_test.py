"""Replicas under a real mpirun: PP x DP against one device that adds in the order of the replicas, ZeRO-1, resume at
other numbers of replicas, what is refused and said."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints, final, tensors  # noqa: E402
from vpp_process import DIGITS, ROOT, Case, main, only_full  # noqa: E402

SCHEDULES = (("1F1B", 1), ("INTERLEAVED_1F1B", 2), ("ZERO_BUBBLE_V", 2))
# Stages x replicas on at most four ranks.
MESHES = (("1", "2,4"), ("2", "1,2"), ("4", "1"))
GPT = f"""
[model]
file = "{ROOT}/models/out/gpt_tied.pt"
[data]
kind = "text"
train = ["{ROOT}/models/data/stdlib.bin"]
sequence_length = 16
[pipeline]
num_stages = 2
num_microbatches = 4
[train]
steps = 4
[optimizer]
lr = 0.003
"""


class Equality(Case):
    def equal(self, plan: str, *arguments: str, ranks: int = 4) -> dict:
        done = self.vpp("verify", plan, *arguments, "--steps", "3", "--json", ranks=ranks, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        self.assertTrue(result["equal"])
        return result

    def meshes(self, plan: str, *more: str) -> None:
        layouts = 0
        for schedule, chunks in SCHEDULES:
            for stages, replicas in MESHES:
                # ZERO_BUBBLE_V needs two ranks and more, one rank has nothing to interleave.
                if stages == "1" and schedule != "1F1B":
                    continue
                with self.subTest(f"{schedule} {stages} {replicas}"):
                    result = self.equal(plan, "--stages", stages, "--replicas", replicas, "--zero1", "--virtual",
                                        str(chunks), "--set", f"pipeline.schedule_type={schedule}",
                                        "--set", "mesh.bucket_bytes=20000", *more)
                    self.assertEqual(result["layouts_refused"], {})
                    layouts += result["layouts"]
        self.assertEqual(layouts, 4 + 3 * (3 + 1))

    def test_batch_norm_and_dropout(self):
        self.meshes(self.plan(DIGITS))
        self.equal(self.plan(DIGITS), "--stages", "2", "--replicas", "2", "--zero1", "--recompute", "none,stage",
                   "--set", f"model.file={ROOT}/models/out/vgg.pt")

    def test_random_crops_and_flips(self):
        table = '[[data.transform]]\nfield = "image"\ncrop = [8, 8]\npad = 2\nflip = 0.5\nmean = [0.5]\nstd = [0.3]\n'
        plan = self.plan(DIGITS + table)
        for stages, replicas in MESHES:
            self.equal(plan, "--stages", stages, "--replicas", replicas)
        # They do change what is learned: the same plan without them has other losses.
        for run, text in (("with", DIGITS + table), ("without", DIGITS)):
            done = self.vpp("train", self.plan(text), "--set", f"run.dir={run}", "--set", "train.steps=2", ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.bits("with"), self.bits("without"))

    def test_tied_weights(self):
        self.meshes(self.plan(GPT))

    @only_full
    def test_tied_weights_in_bf16(self):
        self.meshes(self.plan(GPT), "--set", "train.precision=bf16")

    def test_an_overflow_in_fp16_skips_the_step_everywhere(self):
        fp16 = ("--set", "train.precision=fp16", "--set")
        compared = self.equal(self.plan(GPT), "--stages", "2", "--replicas", "2", "--zero1", *fp16,
                              "train.loss_scale=488281.25")
        self.assertGreater(compared["steps_skipped"], 0)
        self.assertLess(compared["steps_skipped"], compared["steps"] * compared["layouts"], "and others are not")
        done = self.vpp("train", self.plan(GPT), *fp16, "train.loss_scale=1e9", "--set", "mesh.dp=2", "--set",
                        "run.dir=run", ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = [line for line in self.metrics("run") if line["event"] == "step"]
        self.assertTrue(steps[0]["skipped"])
        self.assertEqual(steps[1]["loss_scale"], steps[0]["loss_scale"] / 2)

    def test_the_axis_needs_stages(self):
        done = self.vpp("verify", self.plan(DIGITS), "--replicas", "2", ranks=2)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--stages", done.stderr)

    def test_deferred_batch_norm_and_no_overlap(self):
        self.equal(self.plan(DIGITS), "--stages", "2", "--replicas", "2", "--zero1",
                   "--set", "pipeline.deferred_batch_norm=true")
        self.equal(self.plan(DIGITS), "--stages", "2", "--replicas", "2", "--zero1",
                   "--set", "pipeline.overlap_p2p_comm=false")


class Runs(Case):
    def train(self, run: str, *settings: str, ranks: int = 4) -> str:
        arguments = [item for setting in (f"run.dir={run}", *settings) for item in ("--set", setting)]
        done = self.vpp("train", self.plan(DIGITS), *arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_zero1_and_layout_change_no_bit(self):
        self.train("whole", "mesh.dp=2", "train.eval_every=10")
        self.train("part", "mesh.dp=2", "mesh.zero1=true", "train.steps=12", "train.eval_every=10")
        self.train("part", "mesh.dp=2", "pipeline.num_stages=1", "train.steps=20", "train.eval_every=10", ranks=2)
        said = self.train("part", "mesh.dp=2", "mesh.zero1=true", "pipeline.schedule_type=ZERO_BUBBLE_V",
                          "pipeline.virtual_chunks=2", "train.eval_every=10")
        self.assertIn("resumed after step 20", said)
        self.assertNotIn("other bits", said)
        self.assertEqual(self.bits("whole"), self.bits("part"))
        self.assertEqual(final(self.folder / "whole"), final(self.folder / "part"))

    def test_the_world_decides_where_the_plan_does_not(self):
        self.train("named", "mesh.dp=2")
        self.train("left")
        self.assertEqual(self.bits("named"), self.bits("left"))

    def test_resume_at_another_number_of_replicas_is_said(self):
        self.train("run", "mesh.dp=2", "mesh.zero1=true", "train.steps=12")
        self.assertIn("dp was 2, now 1", self.train("run", "mesh.dp=1", "train.steps=20", ranks=2))
        self.assertIn("dp was 1, now 4", self.train("run", "pipeline.num_stages=1", "mesh.dp=4", "mesh.zero1=true"))
        self.assertEqual(len(self.bits("run")), 30)

    def test_every_rank_writes_and_every_tensor_is_there_once(self):
        for zero1 in ("false", "true"):
            self.train(f"run-{zero1}", "mesh.dp=2", f"mesh.zero1={zero1}", "train.steps=5")
        for run in ("run-false", "run-true"):
            newest = checkpoints(self.folder / run)[-1]
            shards = sorted(newest.glob("*.safetensors"))
            self.assertEqual(len(shards), 4)
            names = []
            for shard in shards:
                data = shard.read_bytes()
                header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
                names += [name for name in header if name != "__metadata__"]
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual(len(names), len(tensors(newest)))
        self.assertEqual(final(self.folder / "run-false"), final(self.folder / "run-true"))

    def test_evaluation_does_not_depend_on_replicas(self):
        # The same microbatches of 4 samples.
        losses = []
        for replicas, ranks in ((1, 2), (2, 4)):
            arguments = [f"mesh.dp={replicas}", f"train.global_batch_size={16 * replicas}"]
            done = self.vpp("eval", self.plan(DIGITS), "--initial-weights", "--json",
                            *(item for setting in arguments for item in ("--set", setting)), ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            losses.append(json.loads(done.stdout)["loss"])
        self.assertEqual(losses[0], losses[1])

    def test_drift_checks_pass_and_cost_no_bit(self):
        self.train("without", "mesh.dp=2", "train.steps=6")
        self.train("with", "mesh.dp=2", "train.steps=6", "train.drift_every=2")
        self.assertEqual(self.bits("without"), self.bits("with"))

    def test_zero1_takes_its_part_of_the_memory(self):
        held = {}
        for zero1 in ("false", "true"):
            self.train(f"run-{zero1}", "mesh.dp=2", "train.steps=3", f"mesh.zero1={zero1}",
                       f"model.file={ROOT}/models/out/vgg.pt", "checkpoint.background=false")
            event = next(line for line in self.metrics(f"run-{zero1}") if line["event"] == "memory")
            held[zero1] = [rank["state_bytes"] for rank in event["ranks"]]
        inspected = self.vpp("inspect", self.plan(DIGITS), "--json", "--set", "mesh.dp=2",
                             "--set", f"model.file={ROOT}/models/out/vgg.pt")
        program = json.loads(inspected.stdout)
        for rank, (whole, shared) in enumerate(zip(held["false"], held["true"])):
            stage = program["training"]["split"]["stages"][rank // 2]
            saved = stage["parameter_bytes"]  # two tensors of the parameters' size, half of them
            self.assertAlmostEqual(whole - shared, saved, delta=0.02 * saved + 4096)

    def test_inspect_shows_the_replicas(self):
        done = self.vpp("inspect", self.plan(DIGITS), "--set", "mesh.dp=2", "--set", "mesh.zero1=true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("PP 2 x DP 2 x TP 1", done.stdout)
        self.assertIn("sent to replicas a step", done.stdout)
        self.assertIn("0-1", done.stdout)
        self.assertIn("2-3", done.stdout)


if __name__ == "__main__":
    main()
