"""The real binary without mpirun: exit codes and texts."""

import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import xml.etree.ElementTree
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ENVIRONMENT, ROOT, VPP, Case, main  # noqa: E402

SIX_MISTAKES = """[model]
fiel = "x.pt"
file = "y.pt"
[data]
kind = "txt"
train = ["a.bin"]
sequence_length = "128"
[pipeline]
schedule_type = "1FB1"
[optimizer]
lr = -1
[train]
stepps = 3
"""


class CommandLine(Case):
    def test_version_names_what_it_is_built_of(self):
        done = self.vpp("--version")
        self.assertEqual(done.returncode, 0)
        for word in ("vpp ", "LibTorch 2.11.0", "Open MPI", "compiler"):
            self.assertIn(word, done.stdout)

    def test_help_is_no_error(self):
        done = self.vpp("--help")
        self.assertEqual(done.returncode, 0)
        for command in ("train", "eval", "inspect", "verify", "data"):
            self.assertIn(command, done.stdout)

    def test_a_mistyped_command_is_corrected(self):
        done = self.vpp("trian", "x.toml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("did you mean 'train'", done.stderr)

    def test_wrong_options_are_2(self):
        for arguments in ([], ["train"], ["train", "x.toml", "--nope"], ["verify", "x.toml", "--steps", "0"],
                          ["train", "x.toml", "--log-level", "loud"], ["data"],
                          ["eval", "x.toml", "--overwrite"], ["eval", "x.toml", "--batches", "0"],
                          ["eval", "x.toml", "--checkpoint", "c", "--initial-weights"],
                          ["verify", "x.toml", "--cuts", "random:0"], ["verify", "x.toml", "--stages", "1,x"],
                          ["verify", "x.toml", "--recompute", "none,units:0"]):
            with self.subTest(arguments):
                self.assertEqual(self.vpp(*arguments).returncode, 2)


class Plans(Case):
    def test_six_mistakes_are_six_errors_with_positions(self):
        done = self.vpp("train", self.plan(SIX_MISTAKES))
        self.assertEqual(done.returncode, 78)
        for position in (":2:1:", ":5:8:", ":7:19:", ":9:17:", ":11:6:", ":13:1:"):
            self.assertIn("plan.toml" + position, done.stderr)
        self.assertEqual(done.stderr.count("^"), 6)
        self.assertEqual(done.stdout, "")

    def test_a_missing_plan_is_66(self):
        self.assertEqual(self.vpp("inspect", "nowhere.toml").returncode, 66)

    def test_a_missing_model_is_66_and_a_broken_one_65(self):
        plan = self.plan(DIGITS)
        self.assertEqual(self.vpp("inspect", plan, "--set", "model.file=none.pt").returncode, 66)
        (self.folder / "broken.pt").write_bytes(b"PK\3\4 this is no model")
        done = self.vpp("inspect", plan, "--set", "model.file=broken.pt")
        self.assertEqual(done.returncode, 65)
        self.assertIn("broken.pt", done.stderr)

    def test_files_of_stages_are_checked_like_models(self):
        plan, files = str(ROOT / "configs/two_towers.toml"), "pipeline.stage[{}].file={}"
        done = self.vpp("inspect", plan, "--set", files.format(0, "none.pt"), "--set", files.format(2, "nothing.pt"))
        self.assertEqual(done.returncode, 66, done.stderr)
        for name in ("none.pt", "nothing.pt"):
            self.assertIn(name, done.stderr)
        (self.folder / "broken.pt").write_bytes(b"PK\3\4 this is no model")
        done = self.vpp("inspect", plan, "--set", files.format(1, self.folder / "broken.pt"))
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("broken.pt", done.stderr)

    def test_stages_that_do_not_fit_their_modules_are_said_at_once(self):
        done = self.vpp("inspect", str(ROOT / "configs/two_towers.toml"),
                        "--set", "pipeline.stage[2].inputs=['up', 'lo']",
                        "--set", "pipeline.stage[3].inputs=['mixed', 'up']",
                        "--set", "pipeline.stage[1].outputs=['low', 'gate', 'more']")
        self.assertEqual(done.returncode, 78, done.stderr)
        for text in ("did you mean 'low'", "number of inputs (got 2, expected 3",
                     "number of outputs (got 3 names, forward returns (Tensor, Tensor): 2)"):
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("^"), 3, done.stderr)

    def test_shapes_that_do_not_fit_name_the_stage_and_the_line(self):
        done = self.vpp("inspect", str(ROOT / "configs/two_towers.toml"),
                        "--set", f"data.train.upper={ROOT}/models/data/digits_train_image.npy",
                        "--set", f"data.val.upper={ROOT}/models/data/digits_val_image.npy")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("of the stage 'upper' (two_towers_upper.pt) at two_towers.py:", done.stderr)

    def test_a_flipped_weight_bit_is_found(self):
        model = ROOT / "models/out/bn_cnn.pt"
        with zipfile.ZipFile(model) as archive:
            record = max((i for i in archive.infolist() if "/data/" in i.filename), key=lambda i: i.file_size)
        bad = bytearray(model.read_bytes())
        bad[record.header_offset + 256] ^= 1  # behind the record's own header, which is padded to 64 bytes
        (self.folder / "flipped.pt").write_bytes(bad)
        done = self.vpp("verify", self.plan(DIGITS), "--set", "model.file=flipped.pt", "--set", "pipeline.num_stages=1")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("checksum", done.stderr)

    def test_started_without_mpirun_says_what_to_type(self):
        done = self.vpp("train", self.plan(DIGITS))
        self.assertEqual(done.returncode, 69)
        self.assertIn("mpirun -np 2", done.stderr)

    def test_a_label_out_of_range_is_named(self):
        plan = self.plan(DIGITS)
        labels = bytearray((ROOT / "models/data/digits_train_label.npy").read_bytes())
        labels[-8:] = (10).to_bytes(8, "little")
        (self.folder / "labels.npy").write_bytes(labels)
        done = self.vpp("train", plan, "--set", "data.train.label=labels.npy", "--set", "pipeline.num_stages=1",
                        "--set", "train.steps=60")
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("labels.npy", done.stderr)
        self.assertIn("10", done.stderr)

    def test_an_unbuilt_feature_is_refused_by_name(self):
        done = self.vpp("inspect", self.plan(DIGITS), "--set", "mesh.tp=2")
        self.assertEqual(done.returncode, 78)
        self.assertIn("mesh.tp", done.stderr)
        self.assertIn("not built yet", done.stderr)

    def test_a_group_that_matches_nothing_is_an_error(self):
        plan = self.plan(DIGITS + '[[optimizer.group]]\nmatch = ["nothing.*"]\n')
        done = self.vpp("inspect", plan)
        self.assertEqual(done.returncode, 78)
        self.assertIn("nothing.*", done.stderr)


def on_terminal(columns: int, folder: pathlib.Path, *arguments: str, **environment: str) -> str:
    """What the program writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([VPP, *arguments], stdout=theirs, stderr=subprocess.DEVNULL, cwd=folder,
                               env=ENVIRONMENT | {"TERM": "xterm"} | environment)
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:  # Linux ends a terminal so
        pass
    os.close(ours)
    assert process.wait() == 0
    return text.decode().replace("\r\n", "\n")


class Inspect(Case):
    def test_a_terminal_gets_its_width_and_colour(self):
        for columns in (80, 100, 120):
            text = on_terminal(columns, self.folder, "inspect", self.plan(DIGITS))
            self.assertIn("\x1b[30;48;5;117m 0 \x1b[0m", text)
            plain = re.sub("\x1b\\[[0-9;]*m", "", text)
            long = [line for line in plain.splitlines() if len(line) > columns and "mpirun" not in line]
            self.assertEqual(long, [])
        self.assertNotIn("\x1b", on_terminal(80, self.folder, "inspect", self.plan(DIGITS), NO_COLOR="1"))

    def test_the_page(self):
        done = self.vpp("inspect", self.plan(DIGITS))
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("stage  submodule", "every op, parameter and buffer is in exactly one stage", "mpirun -np 2",
                     "bubble", "Conv2d", "receives", "sends a step", "1F1B: 2 ranks, 2 stages, 4 microbatches"):
            self.assertIn(text, done.stdout)
        self.assertNotIn("\x1b", done.stdout, "no terminal, no colour")
        long = [line for line in done.stdout.splitlines() if len(line) > 120 and "mpirun" not in line]
        self.assertEqual(long, [])

    def test_submodules_are_listed_so_deep(self):
        found = []
        for depth in ("0", "1", "2"):
            done = self.vpp("inspect", self.plan(DIGITS), "--set", "pipeline.num_stages=1", "--depth", depth, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            found.append(json.loads(done.stdout)["inspection"]["modules"])
        self.assertEqual(len(found[0]), 1, found[0])
        self.assertLess(1, len(found[1]))
        self.assertLess(len(found[1]), len(found[2]))
        self.assertEqual([max(row["depth"] for row in rows) for rows in found], [0, 1, 2])

    def test_advice_has_numbers(self):
        done = self.vpp("inspect", self.plan(DIGITS), "--set", "pipeline.num_stages=4")
        self.assertIn("\nadvice\n", done.stdout)
        self.assertRegex(done.stdout, r"with \d+ it\s+would\s+be\s+[\d.]+\s+%")

    def test_pictures_for_papers(self):
        done = self.vpp("inspect", self.plan(DIGITS), "--svg", "model.svg", "--dot", "model.dot")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wrote model.svg", done.stderr)
        picture = xml.etree.ElementTree.parse(self.folder / "model.svg").getroot()
        texts = " ".join(picture.itertext())
        for part in ("stage 0, rank 0", "stage 1, rank 1", "block1", "1F1B: 2 ranks"):
            self.assertIn(part, texts)
        if not shutil.which("dot"):
            self.skipTest("Graphviz is not installed")
        drawn = subprocess.run(["dot", "-Tsvg", self.folder / "model.dot"], capture_output=True, text=True, check=True)
        self.assertIn("stage 1, rank 1", drawn.stdout)
        self.assertEqual(drawn.stderr, "")

    def test_a_picture_that_cannot_be_made(self):
        for place in ("nowhere/model.svg", "."):
            done = self.vpp("inspect", self.plan(DIGITS), "--svg", place)
            self.assertEqual(done.returncode, 73, done.stderr)

    def test_json_is_the_program_and_deterministic(self):
        first = self.vpp("inspect", self.plan(DIGITS), "--json")
        program = json.loads(first.stdout)
        self.assertEqual(len(program["training"]["split"]["stages"]), 2)
        self.assertEqual([stage["rank"] for stage in program["inspection"]["stages"]], [0, 1])
        self.assertEqual(first.stdout, self.vpp("inspect", self.plan(DIGITS), "--json").stdout)

    def test_any_world(self):
        plan = self.plan(DIGITS.replace("num_stages = 2\n", ""))
        for world in (1, 3, 5):
            done = self.vpp("inspect", plan, "--world", str(world))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"PP {world} x", done.stdout)

    def test_a_split_point_gets_the_nearest_name(self):
        done = self.vpp("inspect", self.plan(DIGITS), "--set", "pipeline.split_method=MANUAL",
                        "--set", 'pipeline.split_points=["blok1"]')
        self.assertEqual(done.returncode, 78)
        self.assertIn("did you mean 'block1'", done.stderr)


class DataOrder(Case):
    def test_a_line_a_step_and_every_sample_once_an_epoch(self):
        done = self.vpp("data", "order", self.plan(DIGITS), "--steps", "47")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [[int(i) for i in line.split()] for line in done.stdout.splitlines()]
        self.assertEqual([len(line) for line in lines], [32] * 47)
        flat = [i for line in lines for i in line]
        self.assertEqual(len(set(flat[:1509])), min(1509, len(flat)))


class OneRank(Case):
    def test_training_without_mpirun_at_one_stage(self):
        done = self.vpp("train", self.plan(DIGITS), "--set", "pipeline.num_stages=1", "--set", "run.dir=run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("step    30/30", done.stdout)
        self.assertTrue((self.folder / "run/checkpoints/step-00000030/manifest.json").exists())
        losses = [line["loss"] for line in self.metrics("run") if line["event"] == "step"]
        self.assertEqual(len(losses), 30)
        self.assertLess(losses[-1], losses[0] - 0.3)

    def test_a_loss_that_is_not_finite_stops_before_the_update(self):
        done = self.vpp("train", self.plan(DIGITS), "--set", "pipeline.num_stages=1", "--set", "run.dir=run",
                        "--set", "optimizer.lr=1e30")
        self.assertEqual(done.returncode, 79, done.stderr)
        self.assertIn("Nothing was updated", done.stderr)
        end = self.run_end("run")
        self.assertEqual((end["exit_code"], "vpp: error: " + end["text"]), (79, done.stderr.splitlines()[-1]))
        compared = self.vpp("compare", "run").stdout
        self.assertIn("failed with 79", compared)
        self.assertIn("Nothing was updated", " ".join(compared.split()))

    def test_weights_that_an_update_has_damaged_are_told_of_with_what_helps(self):
        words = ("train", self.plan(DIGITS), "--set", "pipeline.num_stages=1", "--set", "run.dir=run", "--set")
        for steps, told in ((1, r"an update up to step 1 has made the parameter '[\w.]+' not finite, which is not "),
                            (3, r"the parameter '[\w.]+' is not finite before this step already, by an earlier")):
            done = self.vpp(*words, f"train.steps={steps}", "--set", "optimizer.lr=1e308")
            self.assertEqual(done.returncode, 79, done.stderr)
            self.assertRegex(done.stderr, told)
            self.assertIn('checkpoint.resume = "run/checkpoints/step-..."', done.stderr)
            self.assertNotIn("Lower optimizer.lr", done.stderr)
            self.assertEqual(list((self.folder / "run").glob("checkpoints/step-*")), [])
        self.assertEqual(self.vpp(*words, "train.steps=3").returncode, 0)

    def test_verify_at_one_rank_says_that_it_compares_two_runs(self):
        done = self.vpp("verify", self.plan(DIGITS), "--set", "pipeline.num_stages=1", "--steps", "3", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["equal"])
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    main()
