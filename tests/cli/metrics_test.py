"""eval.metrics: accuracy and perplexity as PyTorch counts them, the same on any layout."""

import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import torch  # noqa: E402
from vpp_process import Case, main  # noqa: E402

PLAN = """
[model]
file = "model.pt"
inputs = ["x"]
[loss]
kind = "cross_entropy"
target = "y"
[data]
kind = "arrays"
[data.train]
x = "x.npy"
y = "y.npy"
[data.val]
x = "x.npy"
y = "y.npy"
[pipeline]
num_microbatches = 2
[train]
steps = 4
global_batch_size = 8
eval_every = 2
[eval]
metrics = ["accuracy", "perplexity"]
[run]
dir = "run"
"""


class Model(torch.nn.Module):
    """Logits of 5 classes at each of 3 places, classes along dim 1."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 12), torch.nn.Linear(12, 15)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x))).view(-1, 5, 3)


class Shifts(Model):
    """Its own loss, of each place's score for the next place's class, as language models have it."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        scores = super().forward(x).transpose(1, 2)
        shifted = torch.nn.functional.pad(y, (0, 1), value=-100)[..., 1:].contiguous()
        return torch.nn.functional.cross_entropy(scores.reshape(-1, 5), shifted.view(-1))


class Metrics(Case):
    def setUp(self):
        super().setUp()
        torch.manual_seed(3)
        torch.jit.script(Model()).save(str(self.folder / "model.pt"))
        random = numpy.random.default_rng(5)
        numpy.save(self.folder / "x.npy", random.standard_normal((27, 6)).astype(numpy.float32))
        self.targets = random.integers(0, 5, (27, 3))
        self.targets[::4, 1] = -100
        numpy.save(self.folder / "y.npy", self.targets)
        (self.folder / "plan.toml").write_text(PLAN)

    def eval(self, *arguments: str, ranks: int = 0) -> dict:
        done = self.vpp("eval", "plan.toml", "--initial-weights", "--json", *arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_they_are_those_of_the_outputs(self):
        found = self.eval("--outputs", "out")
        logits = torch.from_numpy(numpy.load(self.folder / "out/output0.npy"))
        targets = torch.from_numpy(self.targets)
        counted = targets != -100
        hits = (logits.argmax(1) == targets) & counted
        self.assertEqual(found["accuracy"], hits.sum().item() / counted.sum().item())
        self.assertNotEqual(found["accuracy"], hits.sum().item() / targets.numel(), "ignored targets do not count")
        self.assertEqual(found["perplexity"], math.exp(found["loss"]))
        targets = torch.where(counted, targets, 4)
        numpy.save(self.folder / "y.npy", targets.numpy())
        counted = targets != 2
        hits = (logits.argmax(1) == targets) & counted
        self.assertEqual(self.eval("--set", "loss.ignore_index=2")["accuracy"],
                         hits.sum().item() / counted.sum().item())

    def test_no_layout_changes_them_and_they_change_no_loss(self):
        keys = ("loss", "accuracy", "perplexity", "samples")
        expected = [self.eval()[key] for key in keys]
        for sets in (["mesh.dp=2", "pipeline.num_microbatches=1"], ["mesh.pp=2"],
                     ["mesh.dp=2", "mesh.pp=2", "pipeline.num_microbatches=1"]):
            arguments = [argument for each in sets for argument in ("--set", each)]
            ranks = 4 if len(sets) == 3 else 2
            found = self.eval(*arguments, ranks=ranks)
            self.assertEqual([found[key] for key in keys], expected, sets)
        plain = self.eval("--set", "eval.metrics=[]")
        self.assertEqual(plain["loss"], expected[0])
        self.assertNotIn("accuracy", plain)

    def test_a_training_shows_them(self):
        done = self.vpp("train", "plan.toml", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line for line in self.metrics("run") if line["event"] == "eval"]
        self.assertEqual([line["step"] for line in lines], [0, 2, 4])
        first = self.eval()
        self.assertEqual([lines[0][key] for key in ("loss", "accuracy")], [first[key] for key in ("loss", "accuracy")])
        self.assertIn(f"accuracy {100 * lines[2]['accuracy']:.2f}%  perplexity ", done.stdout + done.stderr)
        trained = self.vpp("eval", "plan.toml")
        self.assertIn(f", accuracy {100 * lines[2]['accuracy']:.2f}%, perplexity ", trained.stdout)
        bits = self.bits("run")
        self.vpp("train", "plan.toml", "--set", "eval.metrics=[]", "--set", "run.dir=plain", ranks=2)
        self.assertEqual(self.bits("plain"), bits)

    def test_an_op_that_fails_is_told_with_step_and_samples(self):
        example = torch.zeros(4, 6), torch.zeros(4, 3, dtype=torch.int64)
        torch.jit.trace(Shifts(), example).save(str(self.folder / "model.pt"))
        self.targets[:, 1] = 7  # no class
        self.targets[5, 1] = 1
        numpy.save(self.folder / "bad.npy", self.targets)
        plan = PLAN[:PLAN.index("[loss]")] + PLAN[PLAN.index("[data]"):PLAN.index("[eval]")] + '[run]\ndir = "run"\n'
        plan = plan.replace('inputs = ["x"]', "")
        (self.folder / "plan.toml").write_text(plan.replace('y = "y.npy"', 'y = "bad.npy"', 1))
        order = self.vpp("data", "order", "plan.toml", "--steps", "1").stdout.split()
        done = self.vpp("train", "plan.toml", "--set", "train.eval_every=0", ranks=2)
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, r"stage 1, F of microbatch 0: the op aten::cross_entropy_loss in .* fails: "
                                      r"Target 7 is out of bounds\. \(step 1, samples \d+, \d+, \d+, \d+\)")
        self.assertIn(", ".join(order[-8:-4]), done.stderr, order)
        (self.folder / "plan.toml").write_text(plan.replace('y = "y.npy"', 'y = "bad.npy"'))
        done = self.vpp("eval", "plan.toml", "--initial-weights")
        self.assertEqual(done.returncode, 65)
        self.assertIn("is out of bounds. (evaluation, samples 0, 1, 2, 3 of the validation data)", done.stderr)

    def test_targets_that_are_no_classes_are_refused(self):
        numpy.save(self.folder / "y.npy", numpy.ones((27, 5, 3), dtype=numpy.float32) / 5)
        done = self.vpp("eval", "plan.toml", "--initial-weights")
        self.assertEqual(done.returncode, 78)
        self.assertIn("accuracy needs targets that are classes, integers (got field y of float32)", done.stderr)


    def test_epochs_of_the_training_do_not_count_the_validation_data(self):
        numpy.save(self.folder / "few_x.npy", numpy.load(self.folder / "x.npy")[:4])
        numpy.save(self.folder / "few_y.npy", self.targets[:4])
        plan = PLAN.replace("steps = 4", "epochs = 2") + "[lr_schedule]\nwarmup_steps = 5\n"
        (self.folder / "plan.toml").write_text(plan)
        few = ["--set", "data.val.x=few_x.npy", "--set", "data.val.y=few_y.npy"]
        done = self.vpp("train", "plan.toml", *few, ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.vpp("eval", "plan.toml", *few)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" over 4 samples, after step 6 ", done.stdout)

    def test_a_mean_over_targets_is_that_of_all_however_the_batch_is_cut(self):
        """What F.cross_entropy makes of the whole batch, and of the whole validation data."""
        over_targets = ("--set", "model.loss_reduction=target_mean")
        model = torch.jit.load(str(self.folder / "model.pt"))
        samples, targets = torch.from_numpy(numpy.load(self.folder / "x.npy")), torch.from_numpy(self.targets)
        order = self.vpp("data", "order", "plan.toml", "--steps", "1").stdout.split()
        batch = [int(sample) for sample in order]
        loss = torch.nn.functional.cross_entropy(model(samples[batch]), targets[batch]).item()
        mean = torch.nn.functional.cross_entropy(model(samples), targets).item()

        def first_losses(*words: str, ranks: int) -> tuple[float, float]:
            done = self.vpp("train", "plan.toml", *words, "--set", "checkpoint.resume=no", ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
            losses = {line["event"]: line["loss"] for line in reversed(lines) if line["event"] in ("step", "eval")}
            return losses["step"], losses["eval"]

        for microbatches, dp in ((1, 1), (2, 1), (8, 1), (2, 2)):
            layout = ("--set", f"pipeline.num_microbatches={microbatches}", "--set", f"mesh.dp={dp}")
            found = first_losses(*over_targets, *layout, ranks=2 * dp)
            self.assertAlmostEqual(found[0], loss, 6, layout)
            self.assertAlmostEqual(found[1], mean, 6, layout)
        self.assertNotAlmostEqual(first_losses("--set", "pipeline.num_microbatches=8", ranks=2)[0], loss, 3)
        first = batch[:4]  # of two microbatches
        loss = torch.nn.functional.cross_entropy(model(samples[first]), targets[first]).item()
        done = self.vpp("train", "plan.toml", "--dry-run", *over_targets, ranks=2)
        self.assertIn(f", loss {loss:.4f}", re.sub(r"(loss \d\.\d{4})\d*", r"\1", done.stdout), done.stderr)
        replicas = ("--set", "mesh.dp=2", "--set", "pipeline.num_microbatches=1")
        one, two = self.eval(*over_targets), self.eval(*over_targets, *replicas, ranks=2)
        # With as many stages as there are, the loss and what counts hits are of different ranks.
        four = self.eval(*over_targets, "--set", "pipeline.num_stages=4", ranks=4)
        for key in ("loss", "accuracy", "perplexity"):
            self.assertEqual(one[key], two[key], key)
            self.assertEqual(one[key], four[key], key)

    def test_a_mean_over_targets_is_cut_by_times_where_there_is_one_microbatch(self):
        words = ("model.loss_reduction=target_mean", "pipeline.split_method=AUTO", "pipeline.num_microbatches=1",
                 "train.steps=1", "train.eval_every=0")
        done = self.vpp("train", "plan.toml", *(word for one in words for word in ("--set", one)), ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_verification_in_which_nothing_is_updated_proves_nothing(self):
        words = ["verify", "plan.toml", "--steps", "2", "--set", "train.precision=fp16", "--set"]
        done = self.vpp(*words, "train.loss_scale=1e30", ranks=2)
        self.assertEqual(done.returncode, 79, done.stderr)
        self.assertIn("skipped 2 of 2 steps: they made no update", done.stdout)
        self.assertIn("no step made an update, so none was compared; take more --steps, or a lower train.loss_scale",
                      done.stderr)
        done = self.vpp(*words, "train.loss_scale=1024", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("skipped", done.stdout)

    def test_a_mean_over_targets_counts_those_that_forward_makes(self):
        model = Shifts()
        samples, targets = torch.from_numpy(numpy.load(self.folder / "x.npy")), torch.from_numpy(self.targets)
        torch.jit.trace(model, (samples[:4], targets[:4])).save(str(self.folder / "model.pt"))
        plan = PLAN.replace('inputs = ["x"]\n[loss]\nkind = "cross_entropy"\ntarget = "y"\n', "")
        plan = plan.replace('["accuracy", "perplexity"]', "[]")
        (self.folder / "plan.toml").write_text(plan)
        mean = model(samples, targets).item()
        over_targets = ("--set", "model.loss_reduction=target_mean")
        for microbatches in (1, 2, 8):
            found = self.eval(*over_targets, "--set", f"pipeline.num_microbatches={microbatches}")
            self.assertAlmostEqual(found["loss"], mean, 6, microbatches)
        self.assertNotAlmostEqual(self.eval("--set", "pipeline.num_microbatches=8")["loss"], mean, 3)

    def test_a_step_without_targets_that_count_is_told(self):
        self.targets[:] = -100
        numpy.save(self.folder / "y.npy", self.targets)
        over_targets = ("--set", "model.loss_reduction=target_mean", "--set", "train.eval_every=0")
        done = self.vpp("train", "plan.toml", *over_targets, ranks=2)
        self.assertEqual(done.returncode, 79, done.stderr)
        self.assertIn("all targets of the step are ignore_index (-100). Nothing was updated. train.on_nonfinite = "
                      '"skip" passes over such steps; for a new run leave such samples out, or take a larger '
                      "train.global_batch_size", done.stderr)
        done = self.vpp("eval", "plan.toml", "--initial-weights", *over_targets)
        self.assertIn("the evaluation's loss is not finite: all targets of its samples are ignore_index (-100)",
                      done.stderr)
        numpy.save(self.folder / "y.npy", numpy.zeros((27, 5, 3), numpy.float32))
        done = self.vpp("eval", "plan.toml", "--initial-weights", *over_targets, "--set", "eval.metrics=[]")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn('model.loss_reduction = "target_mean" needs targets that are classes, integers (got field y of '
                      "float32)", done.stderr)

    def test_a_microbatch_without_targets_that_count_is_told(self):
        self.targets[2:4] = -100
        numpy.save(self.folder / "y.npy", self.targets)
        done = self.vpp("eval", "plan.toml", "--initial-weights", "--json", "--set", "train.global_batch_size=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([json.loads(done.stdout)[key] for key in ("loss", "perplexity")], ["nan", "nan"])
        reason = "all targets there are ignore_index (-100), and a mean of none is NaN"
        self.assertIn("the evaluation's loss is not finite: that of samples 2, 3 of the validation data is the first; "
                      + reason, done.stderr)
        self.targets[:] = -100
        numpy.save(self.folder / "y.npy", self.targets)
        done = self.vpp("train", "plan.toml", "--set", "eval.metrics=[]", "--set", "train.eval_every=0", ranks=2)
        self.assertEqual(done.returncode, 79, done.stderr)
        remedy = ('train.on_nonfinite = "skip" passes over such steps; for a new run leave such samples out, take '
                  'larger microbatches, or model.loss_reduction = "target_mean"')
        self.assertIn(f"{reason}. Nothing was updated. {remedy}", done.stderr)

if __name__ == "__main__":
    main()
