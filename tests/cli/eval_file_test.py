"""Traced models that are evaluated from a second trace, in eval mode: the bits of PyTorch's own model.eval()."""

import copy
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from vpp_process import Case, main  # noqa: E402

PLAN = """
[model]
file = "model.pt"
eval_file = "model_eval.pt"
[data]
kind = "arrays"
train = { x = "x.npy", y = "y.npy" }
val = { x = "val_x.npy", y = "val_y.npy" }
[pipeline]
num_stages = 2
num_microbatches = 2
split_method = "UNIFORM"
[optimizer]
lr = 0.01
[train]
steps = 4
global_batch_size = 8
eval_every = 2
"""
WITHOUT = PLAN.replace('eval_file = "model_eval.pt"\n', "")
BY_HAND = PLAN.replace('file = "model.pt"\neval_file = "model_eval.pt"\n', "").replace(
    'split_method = "UNIFORM"\n', """mode = "MANUAL_EAGER"
[[pipeline.stage]]
name = "lower"
file = "lower.pt"
eval_file = "lower_eval.pt"
inputs = ["x"]
outputs = ["h"]
[[pipeline.stage]]
name = "upper"
file = "upper.pt"
inputs = ["h", "y"]
outputs = ["loss"]
""")
MICROBATCH, SAMPLES = 4, 10  # the last microbatch of an evaluation is partial


class Net(nn.Module):
    """What acts by the mode: dropout, attention's own, batch norm; a tied weight and a mask that no state_dict has."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.norm = nn.BatchNorm1d(6)
        self.qkv = nn.Linear(width, 3 * width)
        self.drop = nn.Dropout(0.3)
        self.mix, self.again = nn.Linear(width, width), nn.Linear(width, width)
        self.again.weight = self.mix.weight
        self.head = nn.Linear(width, 8)
        self.register_buffer("mask", torch.ones(6, 6).tril().bool(), persistent=False)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        h = self.drop(self.norm(self.embed(x)))
        q, k, v = self.qkv(h).chunk(3, -1)
        share = 0.2 if self.training else 0.0
        h = h + F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask, dropout_p=share)
        h = self.again(self.drop(F.gelu(self.mix(h))))
        return F.mse_loss(self.head(h), y)


class Upper(nn.Module):
    """The mode is nothing to it."""

    def forward(self, h: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(torch.tanh(h), y)


class EvalFiles(Case):
    def setUp(self):
        super().setUp()
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.net = Net()
        self.save(self.net, True, "model.pt")
        # Its code alone is used.
        self.save(Net(), False, "model_eval.pt")
        for name, samples in (("", 16), ("val_", SAMPLES)):
            for field in "xy":
                numpy.save(self.folder / f"{name}{field}.npy", torch.randn(samples, 6, 8).numpy())

    def save(self, net: nn.Module, training: bool, name: str) -> None:
        inputs = (torch.randn(2, 6, 8), torch.randn(2, 6, 8))[: 1 if isinstance(net, nn.Sequential) else 2]
        traced = torch.jit.trace(copy.deepcopy(net).train(training), inputs, check_trace=False)
        traced.load_state_dict(net.state_dict(), strict=False)  # BatchNorm has moved
        traced.save(str(self.folder / name))

    def mean_loss(self, loss_of) -> float:
        """Of the validation data by PyTorch alone, microbatch after microbatch."""
        x, y = (torch.from_numpy(numpy.load(self.folder / f"val_{field}.npy")) for field in "xy")
        with torch.no_grad():
            losses = [(loss_of(x[i : i + MICROBATCH], y[i : i + MICROBATCH]).item(), len(x[i : i + MICROBATCH]))
                      for i in range(0, SAMPLES, MICROBATCH)]
        return sum(loss * size for loss, size in losses) / SAMPLES

    def eager_loss(self, weights: dict[str, Tensor]) -> float:
        net = Net().eval()
        net.load_state_dict(weights, strict=False)
        return self.mean_loss(net)

    def done(self, command: str, *arguments: str, plan: str = PLAN, ranks: int = 2, code: int = 0):
        done = self.vpp(command, self.plan(plan), *arguments, ranks=ranks)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def trained(self, run: str, plan: str = PLAN, *settings: str) -> tuple[str, dict[int, float]]:
        """What a training says, and its evaluations by step."""
        arguments = [item for setting in (f"run.dir={run}", *settings) for item in ("--set", setting)]
        done = self.done("train", *arguments, plan=plan)
        return done.stdout + done.stderr, {line["step"]: line["loss"] for line in self.metrics(run)
                                           if line["event"] == "eval"}

    def weights_of(self, run: str) -> dict[str, Tensor]:
        self.done("export", "--set", f"run.dir={run}", "--torchscript", "out.pt", "--overwrite", ranks=0)
        return torch.jit.load(str(self.folder / "out.pt")).state_dict()

    def test_evaluations_have_the_bits_of_model_eval(self):
        said, losses = self.trained("run")
        self.assertNotIn("baked into", said)
        self.assertEqual(sorted(losses), [0, 2, 4])
        self.assertEqual(losses[0], self.eager_loss(self.net.state_dict()))
        self.assertEqual(losses[4], self.eager_loss(self.weights_of("run")))

        # Without the second file evaluations have dropout; training has the same bits.
        said, others = self.trained("without", WITHOUT)
        self.assertIn("model.pt: train mode is baked into this model (it was traced), so dropout and batch norm act in "
                      "evaluation as in training; trace it in eval mode too, and name that file in model.eval_file",
                      said)
        self.assertTrue(all(others[step] != losses[step] for step in losses))
        self.assertEqual(self.bits("without"), self.bits("run"))

        for ranks in (1, 2):
            done = self.done("eval", "--set", "run.dir=without", "--set", f"pipeline.num_stages={ranks}", "--json",
                             ranks=ranks)
            self.assertEqual(json.loads(done.stdout)["loss"], losses[4], ranks)

    def test_what_was_trained_is_exported_in_eval_mode(self):
        _, losses = self.trained("run")
        self.done("export", "--set", "run.dir=run", "--set", "model.file=model_eval.pt", "--torchscript", "out.pt",
                  ranks=0)
        self.assertEqual(self.eager_loss(torch.jit.load(str(self.folder / "out.pt")).state_dict()), losses[4])

    def test_a_run_may_get_one_later(self):
        _, whole = self.trained("whole", PLAN, "train.steps=6")
        self.trained("run", WITHOUT)
        said, losses = self.trained("run", PLAN, "train.steps=6")
        self.assertIn("step 4", said)
        self.assertNotIn("other settings", said)
        self.assertEqual(losses[6], whole[6])

    def test_a_pipeline_has_the_bits_of_one_device(self):
        found = json.loads(self.done("verify", "--steps", "3", "--json").stdout)
        self.assertTrue(found["equal"])
        self.assertEqual(found["values_by_kind"]["evaluation"], 2, "loss and samples")

    def test_a_stage_with_a_file_may_have_two(self):
        lower, upper = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.BatchNorm1d(6)), Upper()
        self.save(lower, True, "lower.pt")
        self.save(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3), nn.BatchNorm1d(6)), False, "lower_eval.pt")
        self.save(upper, True, "upper.pt")
        done = self.done("eval", "--initial-weights", "--json", plan=BY_HAND)
        self.assertNotIn("baked into", done.stderr)
        lower.eval()
        self.assertEqual(json.loads(done.stdout)["loss"], self.mean_loss(lambda x, y: upper(lower(x), y)))
        self.assertTrue(json.loads(self.done("verify", "--steps", "2", "--json", plan=BY_HAND).stdout)["equal"])
        done = self.done("eval", "--initial-weights", "--json", plan=BY_HAND.replace('eval_file = "lower_eval.pt"', ""))
        self.assertIn("the stage 'lower': train mode is baked into this model", done.stderr)
        self.save(nn.Sequential(nn.Linear(8, 8, bias=False), nn.Dropout(0.3), nn.BatchNorm1d(6)), False,
                  "lower_eval.pt")
        self.assertIn("they differ in 'lower.0.bias' (got none, expected parameter float32[8])",
                      self.done("eval", "--initial-weights", plan=BY_HAND, code=65).stderr)

    def test_two_files_of_two_models_are_refused(self):
        self.save(Net(width=12), False, "model_eval.pt")
        for command in ("train", "eval"):
            said = self.done(command, code=65).stderr.replace(f"{self.folder}/", "")
            self.assertIn("model_eval.pt is not the model of model.pt in eval mode: they differ in 'embed.weight' (got "
                          "parameter float32[12, 8], expected parameter float32[16, 8]); trace two copies of one "
                          "model, copy.deepcopy(model), behind train() and behind eval()", said)
        (self.folder / "model_eval.pt").unlink()
        self.assertIn("plan.toml:4:13: cannot open the model file", self.done("train", code=66).stderr)

    def test_a_second_file_in_train_mode_is_said(self):
        self.save(self.net, True, "model_eval.pt")
        said = "model_eval.pt: model.eval_file was not traced in eval mode, so dropout and batch norm act in evaluation"
        self.assertIn(said, self.trained("run")[0])
        self.assertIn(said, self.done("eval", "--set", "run.dir=run").stderr)
        page = json.loads(self.done("inspect", "--json", ranks=0).stdout)["inspection"]
        self.assertTrue(any(said in note for note in page["notes"]), page["notes"])
        self.assertIn("model_eval.pt", page["model_files"])


if __name__ == "__main__":
    main()
