"""vpp init: every example is made, inspected and trained by the real binary, and its loss falls."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from vpp_process import VPP, Case, main  # noqa: E402

# Example -> steps of the test, what the first loss is about, and what the last one must be below.
EXAMPLES = {
    "gpt-tiny": (40, 5.7, 3.0),
    "digits-cnn": (50, 2.3, 1.2),
    "two-towers": (50, 2.2, 1.2),
    "manual": (40, 2.3, 1.0),
}
# SHA-256 over the bytes of the data files in the order of their names: the same on every machine.
DATA = {
    "gpt-tiny": "2f81791a602fcd6d76b54adc7fa1c815",
    "digits-cnn": "8d7ae43cf65fd21f34e9647a362ccf23",
    "two-towers": "b64853ed354ea4a8487afa341a50a333",
    "manual": "a97c7a14bd6fb671e1a6e211d2bee110",
}


class Init(Case):
    def make(self, *arguments: str, code: int = 0) -> str:
        done = self.vpp("init", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr if code else done.stdout

    def train(self, plan: str, steps: int) -> list[float]:
        done = self.vpp("run", plan, "--set", f"train.steps={steps}", "--set", "train.eval_every=0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        run = tomllib.loads((self.folder / plan).read_text())["run"]["dir"]
        return [event["loss"] for event in self.metrics(run) if event["event"] == "step"]

    def entries(self) -> set[str]:
        return set(os.listdir(self.folder))


class Examples(Init):
    def test_without_a_name_they_are_listed(self):
        said = self.make()
        for name in [*EXAMPLES, "own-model"]:
            self.assertRegex(said, rf"(?m)^{name} +\w")
        self.assertEqual(self.entries(), set())

    def test_each_is_made_inspected_and_learns(self):
        for name, (steps, first, last) in EXAMPLES.items():
            with self.subTest(name):
                said = self.make(name)
                plan = f"{name}/plan.toml"
                self.assertTrue(said.endswith(f"next:\n  vpp inspect {plan}\n  vpp run {plan}\n"), said)
                listed = re.findall(r"(?m)^  (\S+) +\d", said)
                self.assertEqual(sorted(listed), sorted(os.listdir(self.folder / name)))
                inspected = self.vpp("inspect", plan)
                self.assertEqual((inspected.returncode, inspected.stderr), (0, ""))
                losses = self.train(plan, steps)
                self.assertEqual(len(losses), steps)
                self.assertAlmostEqual(losses[0], first, delta=0.4)
                self.assertLess(sum(losses[-5:]) / 5, last, losses)

    def test_the_data_are_the_same_everywhere(self):
        for name, digest in DATA.items():
            self.make(name)
            files = sorted(path for path in (self.folder / name).iterdir() if path.suffix in (".npy", ".txt"))
            whole = b"".join(path.read_bytes() for path in files)
            self.assertEqual(hashlib.sha256(whole).hexdigest()[:32], digest, name)

    def test_with_labels_that_say_nothing_no_loss_falls(self):
        """The measure of the test above: what is learnt is in the data."""
        self.make("digits-cnn")
        path = self.folder / "digits-cnn/train_label.npy"
        header, labels = path.read_bytes()[:128], path.read_bytes()[128:]
        self.assertTrue(header.endswith(b"\n"))
        path.write_bytes(header + labels[7 * 8:] + labels[:7 * 8])  # every picture has the label of another one
        losses = self.train("digits-cnn/plan.toml", EXAMPLES["digits-cnn"][0])
        self.assertGreater(sum(losses[-5:]) / 5, EXAMPLES["digits-cnn"][2], losses)

    def test_names_of_folders_that_shells_and_plans_read_otherwise(self):
        said = self.make("two-towers", "a b")
        self.assertTrue(said.endswith("next:\n  vpp inspect 'a b/plan.toml'\n  vpp run 'a b/plan.toml'\n"), said)
        self.assertIn("control characters, which no plan may have (got 'x?y')",
                      self.make("two-towers", "x\ny", code=2))
        self.assertIn("the folder's name is not UTF-8, as a plan must be (got 'x\ufffd'); name another folder",
                      self.make("two-towers", os.fsdecode(b"x\xff"), code=2))
        self.assertEqual(self.entries(), {"a b"})

    def test_plans_are_short_and_name_their_runs(self):
        for name in EXAMPLES:
            self.make(name)
            plan = tomllib.loads((self.folder / name / "plan.toml").read_text())
            self.assertLessEqual(plan["train"]["steps"], 200)
            self.assertEqual(plan["run"]["dir"], f"runs/{name}")


class Folder(Init):
    def test_another_folder_names_run_and_commands(self):
        (self.folder / "deep").mkdir()
        said = self.make("manual", "deep/mine/")
        self.assertIn("vpp run deep/mine/plan.toml\n", said)
        self.assertEqual(tomllib.loads((self.folder / "deep/mine/plan.toml").read_text())["run"]["dir"], "runs/mine")
        for given, folder in (("./one/.", "one"), ("deep/two//./", "deep/two"), ("deep/../three", "three")):
            self.assertTrue(self.make("manual", given).endswith(f"  vpp run {folder}/plan.toml\n"), given)
            text = (self.folder / folder / "plan.toml").read_text()
            name = pathlib.Path(folder).name
            self.assertEqual(tomllib.loads(text)["run"]["dir"], f"runs/{name}")
            self.assertIn("#   vpp run plan.toml\n", text)

    def test_nothing_is_overwritten(self):
        self.make("manual")
        before = {path: path.read_bytes() for path in (self.folder / "manual").iterdir()}
        self.assertIn("manual is there already; name another folder", self.make("manual", code=73))
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "manual").iterdir()}, before)
        (self.folder / "file").touch()
        self.make("manual", "file", code=73)
        (self.folder / "empty").mkdir()
        self.make("manual", "empty")
        self.make("manual", ".", code=73)
        self.assertEqual(self.entries(), {"manual", "file", "empty"})

    def test_nothing_is_left_where_it_cannot_be_made(self):
        self.assertIn("make it first", self.make("manual", "none/mine", code=73))
        self.assertEqual(self.make("own-model", "mine", "--model", "none.pt", code=66).count("vpp: error:"), 1)
        (self.folder / "broken.pt").write_bytes(b"no model")
        self.make("own-model", "mine", "--model", "broken.pt", code=65)
        self.assertIn("cannot make a folder in /proc", self.make("manual", "/proc/mine", code=73))
        (self.folder / "closed").mkdir(mode=0o500)
        if os.geteuid() != 0:  # root may write everywhere
            self.make("manual", "closed/mine", code=73)
        self.assertEqual(os.listdir(self.folder / "closed"), [])
        self.assertEqual(self.entries(), {"broken.pt", "closed"})

    def test_a_disk_that_is_full_leaves_nothing(self):
        command = ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$0" init gpt-tiny', VPP]
        done = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertEqual(self.entries(), set())

    def test_names_that_are_not_there(self):
        self.assertIn("there is no example 'gpt-tyni'; did you mean 'gpt-tiny'?", self.make("gpt-tyni", code=2))
        self.assertIn("add --model FILE", self.make("own-model", code=2))
        self.assertIn("--model is for the example own-model", self.make("manual", "--model", "a.pt", code=2))
        self.assertEqual(self.entries(), set())


class WithLoss(nn.Module):
    """Two inputs; returns the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.head = nn.Linear(16, 40)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        scores = self.head(torch.tanh(self.embedding(tokens)))
        return nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


class ScoresOfTokens(nn.Module):
    """As language models do: a score for each token of the vocabulary, at each place."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.head = nn.Linear(16, 40)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.embedding(input_ids)))


class Scores(nn.Module):
    """An image; returns scores of classes. BatchNorm has buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 7 * 7, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.features(image).flatten(1))


class Defaults(nn.Module):
    """Arguments with defaults; returns numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Linear(12, 8)
        self.two = nn.Linear(8, 1)

    def forward(self, x: Tensor, scale: float = 2.0, mask: Tensor | None = None) -> Tensor:
        h = torch.relu(self.one(x))
        if mask is not None:
            h = h * mask
        return self.two(h) * scale


class OptionalTargets(nn.Module):
    """As nanoGPT: scores and, where targets are given, the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.head = nn.Linear(16, 40)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.embedding(idx)
        if targets is not None:
            scores = self.head(x)
            return scores, nn.functional.cross_entropy(scores.view(-1, scores.size(-1)), targets.view(-1))
        return self.head(x[:, [-1], :]), None


class Masked(nn.Module):
    """Positions and a mask of 12 tokens; what is compared has another number of dimensions, of which PyTorch warns."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.one = nn.Linear(16, 1)
        self.register_buffer("mask", torch.ones(12, 12).tril())

    def forward(self, tokens: Tensor, target: Tensor) -> Tensor:
        x = self.embedding(tokens)
        scores = (x @ x.transpose(1, 2)).masked_fill(self.mask == 0, float("-inf"))
        return nn.functional.mse_loss(self.one(scores.softmax(-1) @ x), target)


class OwnModel(Init):
    def plan_for(self, model: nn.Module, trace: tuple[Tensor, ...] | None = None) -> tuple[str, dict]:
        scripted = torch.jit.trace(model, trace, check_trace=False) if trace else torch.jit.script(model.train())
        scripted.save(str(self.folder / "model.pt"))
        shutil.rmtree(self.folder / "mine", ignore_errors=True)
        said = self.make("own-model", "mine", "--model", "model.pt")
        return said, tomllib.loads((self.folder / "mine/plan.toml").read_text())

    def check_runs(self) -> list[float]:
        shutil.rmtree(self.folder / "runs", ignore_errors=True)
        inspected = self.vpp("inspect", "mine/plan.toml")
        self.assertEqual(inspected.returncode, 0, inspected.stderr)
        losses = self.train("mine/plan.toml", 3)
        self.assertEqual(len(losses), 3)
        return losses

    def test_a_model_with_its_loss(self):
        said, plan = self.plan_for(WithLoss())
        self.assertEqual(plan["model"]["file"], "../model.pt")
        self.assertNotIn("loss", plan)
        self.assertEqual(plan["data"]["fields"], {"tokens": "int64[16] < 40", "targets": "int64[16] < 40"})
        self.assertIn("guessed tokens = int64[16]: it chooses rows of an embedding\n", said)
        self.check_runs()

    def test_a_language_model_without_a_loss(self):
        said, plan = self.plan_for(ScoresOfTokens())
        self.assertIn("guessed the loss cross_entropy with targets = int64[16]: by the shape", said)
        self.assertEqual(plan["loss"], {"kind": "cross_entropy", "target": "targets", "class_dim": -1})
        self.check_runs()
        verified = self.vpp("verify", "mine/plan.toml", "--steps", "2", ranks=2)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_a_model_without_a_loss(self):
        for trace in (None, (torch.rand(2, 3, 28, 28),)):
            with self.subTest("traced" if trace else "scripted"):
                said, plan = self.plan_for(Scores(), trace)
                self.assertIn("guessed the loss cross_entropy with label = int64[]: by the shape", said)
                self.assertEqual(plan["loss"], {"kind": "cross_entropy", "target": "label"})
                self.assertEqual(plan["data"]["fields"], {"image": "float32[3, 28, 28]", "label": "int64[] < 10"})
                self.check_runs()

    def test_arguments_with_defaults_are_left_out(self):
        _, plan = self.plan_for(Defaults())
        self.assertEqual(plan["data"]["fields"], {"x": "float32[12]", "target": "float32[1]"})
        self.assertEqual(plan["loss"], {"kind": "mse", "target": "target"})
        self.assertIn("# Left out: scale (float), which has a default.\n",
                      (self.folder / "mine/plan.toml").read_text())
        self.check_runs()

    def test_targets_with_a_default_are_fed(self):
        _, plan = self.plan_for(OptionalTargets())
        self.assertEqual(plan["model"]["loss_output"], 1)
        self.assertNotIn("loss", plan)
        self.assertEqual(plan["data"]["fields"], {"idx": "int64[16] < 40", "targets": "int64[16] < 40"})
        self.check_runs()

    def test_numbers_are_of_the_type_of_the_weights(self):
        for dtype, precision in ((torch.float64, ""), (torch.bfloat16, "bf16"), (torch.float16, "fp16")):
            with self.subTest(dtype):
                name = str(dtype).removeprefix("torch.")
                net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
                said, plan = self.plan_for(net.to(dtype))
                self.assertEqual(set(plan["data"]["fields"].values()), {f"{name}[8]", f"{name}[1]"}, said)
                if not precision:
                    self.check_runs()
                    continue
                self.assertIn(f"is {name}, which random data are not; save the model behind .float(), and compute in "
                              f'half precision by train.precision = "{precision}"\nfirst: mend the model', said)

    def test_sizes_of_the_model_are_found_and_warnings_said_once(self):
        said, plan = self.plan_for(Masked())
        self.assertEqual(plan["data"]["fields"]["tokens"], "int64[12] < 40", said)
        made = self.vpp("init", "own-model", "again", "--model", "model.pt")
        self.assertLessEqual(made.stderr.count("Using a target size"), 1, made.stderr)
        ran = self.vpp("run", "mine/plan.toml", "--set", "train.steps=3")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(ran.stderr.count("Using a target size"), (1, 2), "once by the rank that prepares and that trains")

    def test_a_frozen_model_is_refused_before_it_starts(self):
        scripted = torch.jit.script(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).eval())
        torch.jit.freeze(scripted).save(str(self.folder / "model.pt"))
        said = self.make("own-model", "mine", "--model", "model.pt")
        self.assertIn("the model cannot be used as it is: the model has no parameters", said)
        self.assertTrue(said.endswith("first: mend the model, then remove this folder and make it anew\n"), said)
        for command in ("inspect", "run"):
            done = self.vpp(command, "mine/plan.toml")
            self.assertEqual(done.returncode, 65)
            self.assertIn("the model has no parameters, so there is nothing to train; torch.jit.freeze", done.stderr)

    def test_what_must_be_filled_in_comes_first(self):
        said, _ = self.plan_for(nn.Sequential(nn.Flatten(), nn.Unflatten(1, (7, 11)), nn.Linear(11, 3)))
        self.assertRegex(said, r"first: fill in plan.toml at line [0-9, ]+; it cannot run before\n$")
        self.assertNotIn("vpp run", said)

    def test_a_refused_or_damaged_model_makes_no_folder(self):
        class Prints(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                print("x")
                return x

        torch.jit.script(Prints()).save(str(self.folder / "prints.pt"))
        self.assertIn("calls print", self.make("own-model", "mine", "--model", "prints.pt", code=77))
        torch.jit.script(Defaults()).save(str(self.folder / "cut.pt"))
        whole = (self.folder / "cut.pt").read_bytes()
        (self.folder / "cut.pt").write_bytes(whole[:len(whole) // 2])
        self.make("own-model", "mine", "--model", "cut.pt", code=65)
        (self.folder / "cut.pt").rename(self.folder / os.fsdecode(b"m\xff.pt"))
        (self.folder / os.fsdecode(b"m\xff.pt")).write_bytes(whole)
        self.assertIn("the path of the model is not UTF-8, as a plan must be (got '../m\ufffd.pt'); rename it",
                      self.make("own-model", "mine", "--model", os.fsdecode(b"m\xff.pt"), code=2))
        self.assertEqual(self.entries(), {"prints.pt", os.fsdecode(b"m\xff.pt")})


if __name__ == "__main__":
    main()
