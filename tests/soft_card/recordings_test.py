"""Recorded ops (CUDA graphs) on soft cards: what is replayed has the bits of what runs op by op, and what cannot be
replayed is said and runs. VPP_BINARY is vpp with soft cards."""

import hashlib
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import torch  # noqa: E402
from tiny_model import ARRAYS_PLAN, PLAN  # noqa: E402
from vpp_process import DIGITS, ROOT, Case  # noqa: E402

SETTINGS = ("train.steps=8", "train.global_batch_size=8", "pipeline.num_microbatches=4", "pipeline.num_stages=2",
            "data.samples=64")

CLASSES = """val = { x = "vx.npy", y = "vy.npy" }
[eval]
metrics = ["accuracy"]
[pipeline]
"""


class Layers(torch.nn.Module):
    """What the models of the tests are made of: two layers, between which a stage ends."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.3)
        self.last = torch.nn.Linear(4, 4)


class Drops(Layers):
    def forward(self, x):
        return self.last(self.drop(torch.relu_(self.first(x))))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.drop = torch.nn.Dropout(0.3)

    def forward(self, x):
        return x + self.drop(torch.relu_(self.norm(self.linear(x))))


class Blocks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(*(Block() for _ in range(6)))

    def forward(self, x):
        return self.blocks(x)


class Looks(Layers):
    """Whether the first layer's values and weight are used further on is up to the numbers."""

    def forward(self, x):
        y = self.drop(self.first(x))
        z = self.last(x)
        if bool(x.sum() > 0):
            z = z + torch.nn.functional.linear(y, self.first.weight)
        return z


class Averages(Layers):
    """Divides by a size, which a trace has as a tensor of the host from where it is read."""

    def forward(self, x):
        n = x.shape[0]
        return self.last(torch.tanh(self.first(x))) / n


class Chooses(Layers):
    def forward(self, x):
        y = self.first(x)
        return self.last(y) + y[y > 0].sum()


class Prints(Layers):
    def forward(self, x):
        print("here")
        return self.last(self.first(x))


class Recordings(Case):
    number = 0  # of the runs in a test

    def train(self, *settings: str, text: str = PLAN, ranks: int = 2, **environment: str) -> tuple[list, str]:
        """Its bits, and what it says."""
        self.number += 1
        name = f"run{self.number}"
        words = (word for one in (*settings, f"run.dir={name}") for word in ("--set", one))
        done = self.vpp("train", self.plan(text), *words, ranks=ranks,
                        environment={"VPP_SOFT_CARDS": "2"} | environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(self.bits(name)), 3, "there are steps behind the recording")
        return self.bits(name), done.stderr

    def expect_same_bits(self, *settings: str, text: str = PLAN, ranks: int = 2) -> str:
        """Of recorded ops and of ops; what the job with recorded ones says."""
        recorded, said = self.train(*settings, text=text, ranks=ranks)
        by_op, nothing = self.train(*settings, "pipeline.cuda_graphs=false", text=text, ranks=ranks)
        self.assertEqual(recorded, by_op)
        self.assertNotIn("CUDA graphs", nothing)
        return said

    def save(self, model: torch.nn.Module) -> None:
        torch.manual_seed(3)
        torch.jit.script(model).save(str(self.folder / "model.pt"))

    def test_random_ops_and_writes_in_place_are_replayed(self):
        self.save(Drops())
        for one in ("pipeline.schedule_type=1F1B", "pipeline.schedule_type=GPIPE", "train.precision=fp16"):
            with self.subTest(one):
                self.assertIn("info: CUDA graphs: the ops of 2 of 2 segments are recorded, and replayed from now on",
                              self.expect_same_bits(*SETTINGS, one))
        self.assertNotEqual(self.train(*SETTINGS)[0], self.train(*SETTINGS, "train.seed=6")[0], "the control")

    def test_replicas_and_recompute(self):
        settings = ("train.steps=6", "mesh.dp=2", "pipeline.recompute.what=stage",
                    "pipeline.recompute.except_last=true")
        said = self.expect_same_bits(*settings, text=DIGITS, ranks=4)
        self.assertRegex(said, r"the ops of (\d+) of \1 segments are recorded")

    def test_recomputed_blocks_are_replayed(self):
        self.save(Blocks())
        recompute = ("pipeline.recompute.what=modules", "pipeline.recompute.modules=['blocks.*']")
        for some in (["pipeline.schedule_type=GPIPE", "pipeline.recompute.except_last=true"],
                     ["pipeline.virtual_chunks=2", "pipeline.schedule_type=INTERLEAVED_1F1B"],
                     ["pipeline.schedule_type=ZERO_BUBBLE_H1"],
                     ["pipeline.virtual_chunks=2", "pipeline.schedule_type=ZERO_BUBBLE_V"],
                     ["train.precision=fp16"]):
            with self.subTest(" ".join(some)):
                said = self.expect_same_bits(*SETTINGS, *recompute, *some)
                self.assertRegex(said, r"the ops of (\d+) of \1 segments are recorded")
                self.assertNotIn("op by op", said)

    def test_evaluation_is_replayed_too(self):
        self.save(Drops())
        random = numpy.random.default_rng(5)
        for name in ("x", "vx"):
            numpy.save(self.folder / f"{name}.npy", random.standard_normal((67, 4)).astype(numpy.float32))
        for name in ("y", "vy"):
            numpy.save(self.folder / f"{name}.npy", random.integers(0, 4, 67))
        text = ARRAYS_PLAN.replace('"mse"', '"cross_entropy"').replace("[pipeline]", CLASSES)
        settings = ["train.eval_every=1", *(one for one in SETTINGS if "samples" not in one)]
        events = []
        for more in ([], ["pipeline.cuda_graphs=false"], ["train.seed=7"]):
            self.train(*settings, *more, text=text)
            events.append([{key: line[key] for key in ("step", "loss", "accuracy", "samples")}
                           for line in self.metrics(f"run{self.number}") if line["event"] == "eval"])
        self.assertEqual(len(events[0]), 9)
        self.assertEqual(events[0][-1]["samples"], 67)
        self.assertEqual(events[0], events[1])
        self.assertNotEqual(events[0], events[2], "the control")
        found = []
        for more in ([], ["pipeline.cuda_graphs=false"]):
            words = [word for one in (*settings, "run.dir=run1", *more) for word in ("--set", one)]
            done = self.vpp("eval", self.plan(text), "--json", "--outputs", f"out{len(found)}", *words, ranks=2,
                            environment={"VPP_SOFT_CARDS": "2"})
            self.assertEqual(done.returncode, 0, done.stderr)
            figures = json.loads(done.stdout)
            outputs = (self.folder / f"out{len(found)}/output0.npy").read_bytes()
            found.append([outputs, *(figures[key] for key in ("loss", "accuracy", "samples"))])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0][1:3], [events[0][-1]["loss"], events[0][-1]["accuracy"]])

    def test_what_stages_take_is_that_of_their_ops(self):
        """A replay takes only what it gives on; figures of memory are those of actions that ran op by op."""
        self.save(torch.nn.Sequential(torch.nn.Linear(4, 3000), torch.nn.Tanh(), torch.nn.Tanh(),
                                      torch.nn.Linear(3000, 4)))
        held, kept = [], []
        for graphs in ("true", "false"):
            one = f"pipeline.cuda_graphs={graphs}"
            self.train(*SETTINGS, "model.inputs=['x']", one)
            memory = next(line for line in self.metrics(f"run{self.number}") if line["event"] == "memory")
            held.append([(rank["least_simulated_bytes"], rank["most_simulated_bytes"]) for rank in memory["ranks"]])
            words = [word for setting in (*SETTINGS, "model.inputs=['x']", one) for word in ("--set", setting)]
            done = self.vpp("profile", self.plan(PLAN), "--out", f"costs-{graphs}.json", *words)
            self.assertEqual(done.returncode, 0, done.stderr)
            parts = json.loads((self.folder / f"costs-{graphs}.json").read_text())["parts"]
            kept.append(next(part["bytes"] for part in parts if part["module"] == "2"))
        for recorded, by_op in zip(*held):
            self.assertGreater(recorded[0], 0.8 * by_op[0])
        self.assertEqual(kept[0], kept[1])
        self.assertGreaterEqual(kept[0], 2 * 3000 * 4, "of two samples")

    def test_gradients_that_come_at_times_only(self):
        self.save(Looks())
        for one in ("pipeline.schedule_type=1F1B", "pipeline.schedule_type=ZERO_BUBBLE_H1",
                    "pipeline.recompute.what=stage"):
            with self.subTest(one):
                said = self.expect_same_bits(*SETTINGS, one)
                self.assertIn("the ops of 1 of 2 segments are recorded", said)
                self.assertIn("op by op, as it cannot be recorded: stage 1: ", said)

    def test_numbers_of_the_host_cross_to_another_card_as_such(self):
        torch.manual_seed(3)
        torch.jit.trace(Averages(), torch.ones(3, 4)).save(str(self.folder / "model.pt"))
        settings = [word for one in (*SETTINGS, "train.global_batch_size=12") for word in ("--set", one)]
        for transport in ("nccl", "mpi"):
            with self.subTest(transport):
                done = self.vpp("verify", self.plan(PLAN), *settings, "--steps", "5", "--set",
                                f"mesh.transport={transport}", "--set", f"run.dir={transport}", ranks=2,
                                environment={"VPP_SOFT_CARDS": "2"})
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("bitwise equal: all of it", done.stdout)
        said = self.expect_same_bits(*SETTINGS, "train.global_batch_size=12")
        self.assertIn("the ops of 2 of 2 segments are recorded", said)

    def test_what_cannot_be_replayed_is_said_and_runs(self):
        for model, reason in ((Prints(), "it prints"),
                              (Chooses(), "operation not permitted when stream is capturing")):
            with self.subTest(reason):
                self.save(model)
                digest = hashlib.sha256((self.folder / "model.pt").read_bytes()).hexdigest()
                said = self.expect_same_bits(*SETTINGS, f"model.trust_sha256=['{digest}']")
                self.assertRegex(said, f"as it cannot be recorded: stage [01]: .*{reason}")

    def test_where_there_is_no_room_for_recordings_ops_run_one_by_one(self):
        text = (ROOT / "configs/quickstart.toml").read_text().replace('"../models', f'"{ROOT}/models')
        settings = ("lr_schedule.warmup_steps=1", "train.steps=5", "train.eval_every=0", "pipeline.num_stages=1",
                    "pipeline.schedule_type=GPIPE")
        for megabytes, is_made in ((160, False), (300, True)):
            with self.subTest(megabytes):
                _, said = self.train(*settings, text=text, ranks=1, VPP_SOFT_CARD_BYTES=str(megabytes * 1_000_000))
                self.assertEqual("the ops of 1 of 1 segment are recorded" in said, is_made, said)
                self.assertEqual("cannot be recorded: stage 0: the card has no room for it" in said, not is_made)
                self.assertNotIn("cards were full", said)
        # One recording has room, but evaluation, which runs op by op at first, would have none beside it.
        _, said = self.train(*settings, "pipeline.schedule_type=1F1B", "train.eval_every=4", "train.eval_batches=4",
                             text=text, ranks=1,
                             VPP_SOFT_CARD_BYTES="40000000")
        self.assertIn("cannot be recorded: stage 0: the card has no room for it", said)

    def test_who_has_the_host_wait_for_each_op_has_them_one_by_one(self):
        self.save(Drops())
        by_mpi = "mesh.transport=mpi"
        self.assertIn("are recorded", self.train(*SETTINGS, by_mpi)[1])
        self.assertNotIn("are recorded", self.train(*SETTINGS, by_mpi, CUDA_LAUNCH_BLOCKING="1")[1])

    def test_a_save_and_a_resume_go_on_with_the_bits(self):
        self.save(Drops())
        whole, _ = self.train(*SETTINGS)
        words = [word for one in (*SETTINGS, "run.dir=parts") for word in ("--set", one)]
        for steps in (5, 8):
            done = self.vpp("train", self.plan(PLAN), *words, "--set", f"train.steps={steps}", ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bits("parts"), whole)


if __name__ == "__main__":
    unittest.main(verbosity=2)
