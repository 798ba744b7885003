"""What a command writes never takes the place of what it reads: the plan, its model, its data, a run's own files."""

import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ROOT, Case, main  # noqa: E402


class Outputs(Case):
    def setUp(self):
        super().setUp()
        shutil.copy(ROOT / "models/out/bn_cnn.pt", self.folder / "m.pt")
        shutil.copy(ROOT / "models/data/digits_train_label.npy", self.folder / "y.npy")
        text = DIGITS.replace(f"{ROOT}/models/out/bn_cnn.pt", "m.pt")
        self.plan(text.replace(f"{ROOT}/models/data/digits_train_label.npy", "y.npy") + '[run]\ndir = "r"\n', "p.toml")
        self.record_run("r", [3, 2, 1], train__seed="1")
        (self.folder / "r/checkpoints/step-00000003").mkdir(parents=True)
        (self.folder / "r/checkpoints/step-00000003/manifest.json").write_text("{}")
        (self.folder / "link").symlink_to(self.folder)
        os.link(self.folder / "p.toml", self.folder / "hard.toml")
        self.before = self.contents()

    def contents(self) -> dict[str, bytes]:
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def refused(self, text: str, *arguments: str) -> None:
        done = self.vpp(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(text + "; name another file", done.stderr)
        self.assertEqual(self.contents(), self.before)

    def test_the_plan(self):
        self.refused("--out would replace p.toml, the plan", "profile", "p.toml", "--out", "p.toml")
        self.refused("--svg would replace ./link/p.toml, the plan", "inspect", "p.toml", "--svg", "./link/p.toml")
        self.refused("--dot would replace hard.toml, the plan", "inspect", "p.toml", "--dot", "hard.toml")
        self.refused("--svg would replace p.toml, the plan", "schedule", "show", "--config", "p.toml", "--svg",
                     "p.toml")
        self.refused("--out would replace p.toml, the plan", "schedule", "search", "--config", "p.toml", "--out",
                     "p.toml")

    def test_the_files_that_it_names(self):
        self.refused("--svg would replace m.pt, a model file of the plan", "inspect", "p.toml", "--svg", "m.pt")
        self.refused("--out would replace y.npy, a data file of the plan", "profile", "p.toml", "--out", "y.npy")
        self.refused("--svg would replace m.pt, model.init_from of the plan", "inspect", "p.toml", "--svg", "m.pt",
                     "--set", f"model.file={ROOT}/models/out/bn_cnn.pt", "--set", "model.init_from=m.pt")
        self.refused("--svg would replace m.pt, a model file of the plan", "inspect", "p.toml", "--svg", "m.pt",
                     "--set", f"model.file={ROOT}/models/out/bn_cnn.pt", "--set", "model.eval_file=m.pt")

    def test_arrays_and_weights_that_lie_with_others(self):
        shutil.copy(self.folder / "y.npy", self.folder / "d.npz")
        (self.folder / "w").mkdir()
        for name in ("one.safetensors", "model.safetensors.index.json", "costs.json"):
            (self.folder / "w" / name).write_text("{}")
        self.before = self.contents()
        label = ("--set", 'data.train.label="d.npz:y"')
        self.refused("--svg would replace d.npz, a data file of the plan", "inspect", "p.toml", *label, "--svg",
                     "d.npz")
        for named in ("w", "w/model.safetensors.index.json"):
            for output in ("w/one.safetensors", "w/model.safetensors.index.json"):
                self.refused(f"--dot would replace {output}, model.init_from of the plan", "inspect", "p.toml", "--dot",
                             output, "--set", f"model.init_from={named}")
        done = self.vpp("inspect", "p.toml", "--dot", "w/costs.json", "--set", "model.init_from=w")
        self.assertNotIn("would replace", done.stderr)

    def test_a_run(self):
        for file in ("metrics.jsonl", "plan.toml", "checkpoints/step-00000003/manifest.json", "checkpoints/new.svg"):
            self.refused(f"-o would replace r/{file}, a file of the run r", "report", "r", "-o", f"r/{file}")
            self.refused(f"--svg would replace r/{file}, a file of the run r", "inspect", "p.toml", "--svg",
                         f"r/{file}")
        self.refused("--svg would replace r/metrics.jsonl, a file of the run link/r", "compare", "link/r", "--svg",
                     "r/metrics.jsonl")

    def test_a_schedule(self):
        self.assertEqual(self.vpp("schedule", "search", "--pp", "2", "--moves", "10", "--out", "s.csv").returncode, 0)
        self.before = self.contents()
        self.refused("--trace would replace s.csv, the schedule", "schedule", "show", "--file", "s.csv", "--trace",
                     "s.csv")

    def test_what_commands_make_may_be_made_again(self):
        for _ in range(2):
            for arguments in (("report", "r"), ("compare", "r", "--svg", "r/loss.svg"),
                              ("inspect", "p.toml", "--svg", "r/p.svg"), ("profile", "p.toml", "--out", "r/costs.json"),
                              ("schedule", "search", "--pp", "2", "--moves", "10", "--out", "s.csv")):
                done = self.vpp(*arguments)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    main()
