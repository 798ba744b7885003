"""Names of files that are not plain words: no run is lost over one, and lines to be copied have quotes around them."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ENVIRONMENT, VPP, Case, main  # noqa: E402

NO_UTF8 = os.fsdecode(b"pl\xfe.toml")
SHORT = ("--set", "train.steps=2", "--set", "pipeline.num_stages=1")


class Names(Case):
    def any_bytes(self, *arguments: str) -> subprocess.CompletedProcess:
        """Names of files may be no UTF-8, and so may what is printed of them."""
        return subprocess.run([VPP, *arguments], cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
                              errors="surrogateescape", timeout=120)

    def ok(self, *arguments: str) -> str:
        done = self.any_bytes(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class NoUtf8(Names):
    def test_a_plan_trains_into_a_folder_of_another_name(self):
        (self.folder / NO_UTF8).write_text(DIGITS)
        self.ok("train", NO_UTF8, *SHORT)
        self.assertTrue((self.folder / "runs/plan/checkpoints/step-00000002/manifest.json").exists())
        self.ok("eval", NO_UTF8, *SHORT)
        self.assertIn("runs/plan", self.ok("compare", "runs/plan"))

    def test_a_folder_around_the_plan_and_its_files(self):
        around = self.folder / os.fsdecode(b"f\xff")
        around.mkdir()
        plan = tomllib.loads(DIGITS)
        files = [plan["model"]["file"], *plan["data"]["train"].values(), *plan["data"]["val"].values()]
        text = DIGITS
        for file in files:
            shutil.copy(file, around)
            text = text.replace(file, pathlib.Path(file).name)
        (around / "p.toml").write_text(text)
        self.ok("train", str(around / "p.toml"), *SHORT)
        self.assertTrue((self.folder / "runs/p/checkpoints/step-00000002/manifest.json").exists())
        self.assertNotIn("f\\xff", (self.folder / "runs/p/plan.toml").read_text())

    def test_settings_are_refused_before_anything_starts(self):
        plan = self.plan(DIGITS)
        for setting in ("run.dir=r", "model.file=m", "data.train.image=d"):
            done = self.any_bytes("train", plan, *SHORT, "--set", setting + os.fsdecode(b"\xfe"))
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("this byte is not UTF-8", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["plan.toml"])
        done = self.any_bytes("sweep", plan, "--grid", "train.seed=1", "--folder", os.fsdecode(b"r\xfe"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("is no name of a folder", done.stderr)


    def test_json_of_a_schedule_file(self):
        name = os.fsdecode(b"s\xff.csv")
        (self.folder / name).write_text("0F0,,0B0\n,1F0,1B0\n")
        self.assertEqual(json.loads(self.ok("schedule", "check", name, "--json"))["file"], "s\ufffd.csv")


class OutsideAscii(Names):
    def test_a_sweep_and_a_setting_take_them_without_quotes(self):
        plan = self.plan(DIGITS, "\u00fc.toml")
        lines = self.ok("sweep", plan, *SHORT, "--grid", "train.seed=1,2").splitlines()
        self.assertEqual([shlex.split(line)[-1] for line in lines],
                         [f"run.dir=runs/\u00fc-sweep/train.seed={seed}" for seed in (1, 2)])
        line = self.ok("sweep", plan, *SHORT, "--grid", "train.seed=1", "--folder", "runs/\u00fc").rstrip()
        pasted = subprocess.run(["sh", "-c", line], cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
                                timeout=120)
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        self.assertTrue((self.folder / "runs/\u00fc/train.seed=1/metrics.jsonl").exists())
        self.ok("train", plan, *SHORT, "--set", "run.dir=\u00e4")
        self.assertTrue((self.folder / "\u00e4/metrics.jsonl").exists())


class Lines(Names):
    def test_inspect_has_the_settings_and_quotes(self):
        plan = self.plan(DIGITS, "a b.toml")
        setting = "run.dir=it's"
        text = self.ok("inspect", plan, *SHORT, "--set", setting)
        words = shlex.split(re.search(r"(?m)^start +(.*)$", text)[1])
        self.assertEqual(words, ["mpirun", "-np", "1", "vpp", "train", "--config", plan, *SHORT, "--set", setting])

    def test_the_schedule_of_auto_is_kept_by_a_line_that_works(self):
        plan = self.plan(DIGITS, "a b.toml")
        settings = ("--set", "pipeline.schedule_type=AUTO", "--set", "pipeline.search.moves=100")
        text = self.ok("inspect", plan, *settings)
        line = re.search(r"to keep it: (.*), then schedule_type", text)[1]
        self.assertEqual(shlex.split(line),
                         ["vpp", "schedule", "search", "--config", plan, *settings, "--out", "auto.csv"])
        self.ok(*shlex.split(line)[1:])
        self.assertTrue((self.folder / "auto.csv").exists())

    def test_the_comment_of_an_example(self):
        self.ok("init", "two-towers", "x y")
        text = (self.folder / "x y/plan.toml").read_text()
        lines = re.findall(r"(?m)^#   (vpp .*)$", text)
        self.assertIn("vpp inspect plan.toml", lines)
        self.folder /= "x y"  # where the comment has them typed
        self.ok(*shlex.split(lines[0])[1:])

    def test_profile_writes_what_toml_reads(self):
        text = self.ok("profile", self.plan(DIGITS), "--out", 'a"b.json')
        found = tomllib.loads(re.search(r"(?m)^  (cost_file = .*)$", text)[1])
        self.assertEqual(found["cost_file"], 'a"b.json')


if __name__ == "__main__":
    main()
