"""vpp compare: the real binary on recorded runs."""

import json
import math
import sys
import pathlib
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import Case, main  # noqa: E402


class Compare(Case):
    def two_runs(self) -> None:
        self.record_run("one", [9, 8, 7, 6, 5, 4, 3, 2, 1], optimizer__lr="0.1", run__dir='"one"')
        self.record_run("two", [9, 5, 4, 4, 4], optimizer__lr="0.2", run__dir='"two"')

    def test_settings_results_and_curves_side_by_side(self):
        self.two_runs()
        done = self.vpp("compare", "one", "two")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:3], ["A  one", "B  two", ""])
        self.assertEqual(lines[3].split()[:4], ["run", "lr", "state", "steps"])
        self.assertEqual(lines[4].split()[:5], ["A", "0.1", "finished", "9/9", "1.0000"])
        self.assertEqual(lines[5].split()[:5], ["B", "0.2", "unfinished", "5/9", "4.0000"])
        frame = [line.partition("|")[2] for line in lines if "|" in line]
        self.assertEqual(sum(line.count("A") for line in frame) + sum(line.count("B") for line in frame), 9 + 5 - 1)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertNotIn("run.dir", done.stdout)

    def test_a_terminal_has_its_width_and_colours_unless_they_are_unwanted(self):
        self.two_runs()
        wide = self.vpp("compare", "one", "two", environment={"VPP_TERMINAL_WIDTH": "132", "TERM": "xterm"})
        self.assertIn("\x1b[38;5;", wide.stdout)
        plain = self.vpp("compare", "one", "two",
                         environment={"VPP_TERMINAL_WIDTH": "132", "TERM": "xterm", "NO_COLOR": "1"})
        self.assertNotIn("\x1b", plain.stdout)
        self.assertEqual(max(map(len, plain.stdout.splitlines())), 132)
        self.assertNotIn("\x1b", self.vpp("compare", "one", "two").stdout)

    def test_json_is_for_tools(self):
        self.two_runs()
        runs = json.loads(self.vpp("compare", "one", "two", "--json").stdout)["runs"]
        self.assertEqual([run["settings"] for run in runs], [{"optimizer.lr": "0.1"}, {"optimizer.lr": "0.2"}])
        figures = [(run["step"], run["last_loss"], run["best_loss_step"]) for run in runs]
        self.assertEqual(figures, [(9, 1, 9), (5, 4, 3)])

    def test_the_picture_is_xml_with_a_curve_for_each_run(self):
        self.two_runs()
        done = self.vpp("compare", "one", "two", "--svg", "loss.svg")
        self.assertEqual((done.returncode, done.stderr), (0, "vpp: wrote loss.svg\n"))
        root = xml.etree.ElementTree.parse(self.folder / "loss.svg").getroot()
        texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
        for text in ("train/loss", "one", "two", "step"):
            self.assertIn(text, texts)
        self.assertEqual((texts.count("A"), texts.count("B")), (2, 2))
        self.assertEqual(self.vpp("compare", "one", "--svg", "none/loss.svg").returncode, 73)

    def test_other_curves(self):
        self.two_runs()
        self.assertIn("train/lr", self.vpp("compare", "one", "two", "--metric", "train/lr").stdout)
        wrong = self.vpp("compare", "one", "--metric", "loss")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("train/loss", wrong.stderr)

    def test_runs_without_steps_or_finite_losses_and_damaged_ones(self):
        self.record_run("empty", [])
        self.record_run("gone", [2, math.nan, "nan"])
        torn = self.record_run("torn", [3, 2, 1]) / "metrics.jsonl"
        torn.write_text(torn.read_text() + '{"event":"st')
        (self.folder / "torn/plan.toml").write_text("[no toml")
        done = self.vpp("compare", "empty", "gone", "torn")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("vpp: note: torn: metrics.jsonl has 1 line that is no event\n", done.stderr)
        self.assertIn("vpp: note: torn: plan.toml:1:", done.stderr)
        states = [" ".join(line.split()[1:3]) for line in done.stdout.splitlines()[5:8]]
        self.assertEqual(states, ["no step", "not finite", "unfinished 3/9"])
        alone = self.vpp("compare", "empty")
        self.assertEqual((alone.returncode, alone.stderr), (0, ""))
        self.assertIn("train/loss: nothing to draw, no value is finite", alone.stdout)

    def test_what_is_no_run_is_66(self):
        self.two_runs()
        done = self.vpp("compare", "one", "none")
        self.assertEqual((done.returncode, done.stdout), (66, ""))
        self.assertIn("no metrics.jsonl in none; name a folder that vpp train wrote", done.stderr)
        self.assertEqual(self.vpp("compare").returncode, 2)


if __name__ == "__main__":
    main()
