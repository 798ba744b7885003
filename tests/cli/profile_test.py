"""vpp profile and what goes by its file: the cut of AUTO, in inspect, in a training and after a resume."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, Case, main  # noqa: E402

AUTO = DIGITS.replace("[pipeline]\n", "[pipeline]\nsplit_method = \"AUTO\"\n") + '[run]\ndir = "run"\n'

I_KIND, W_KIND = 2, 3  # schedule/action.hpp


class Profile(Case):
    def ok(self, *arguments: str, ranks: int = 0):
        done = self.vpp(*arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done

    def test_measures_and_says_how_to_use_it(self):
        plan = self.plan(AUTO)
        said = self.ok("profile", plan).stdout
        for part in ("submodule", "F + B %", "milliseconds of a microbatch of 8 samples, the lower quartile of ",
                     "\non LibTorch ", "each timed by itself",
                     "wrote costs.json in ", 'cost_file = "costs.json"',
                     "is taken to need 0.02 ms and 0.20 ms a MiB; mpirun vpp profile"):
            self.assertIn(part, said)
        self.assertTrue(all(len(line) <= 120 for line in said.splitlines()), said)
        costs = json.loads((self.folder / "costs.json").read_text())
        parts = costs["parts"]
        self.assertGreater(len(parts), 5)
        self.assertEqual([part["ops"][0] for part in parts[1:]], [part["ops"][1] for part in parts[:-1]])
        self.assertGreater(sum(part["F"] for part in parts), 0)
        self.assertFalse((self.folder / "run").exists(), "profile touches no run folder")

    def test_its_file_decides_the_cut_and_a_damaged_one_is_refused(self):
        plan, file = self.plan(AUTO), self.folder / "costs.json"
        self.assertIn("by estimates", self.ok("inspect", plan).stdout)
        self.ok("profile", plan)
        costs = json.loads(file.read_text())
        cuts = []
        for heavy in (0, -1):
            for part in costs["parts"]:
                part.update(F=1, B=2, I=1, W=1)
            costs["parts"][heavy].update(F=1000, B=2000, I=1000, W=1000)
            file.write_text(json.dumps(costs))
            program = json.loads(self.ok("inspect", plan, "--set", "pipeline.cost_file=costs.json", "--json").stdout)
            cuts.append(program["training"]["split"]["cuts"])
            self.assertEqual(program["balance"]["bottleneck"] >= 3000, True)
            text = self.ok("inspect", plan, "--set", "pipeline.cost_file=costs.json").stdout
            self.assertRegex(text, r"split +AUTO: longest stage 3\d\d\d\.\d+ ms, lower bound 3000\.000 ms, the")
            self.assertNotIn("by estimates", text)
        self.assertEqual(cuts, [[costs["parts"][0]["ops"][1]], [costs["parts"][-1]["ops"][0]]])
        whole = file.read_text()
        file.write_text(whole[:len(whole) // 2])
        done = self.vpp("inspect", plan, "--set", "pipeline.cost_file=costs.json")
        self.assertEqual(done.returncode, 65)
        self.assertIn("costs.json: ", done.stderr)
        file.write_text(whole.replace(costs["model"], "0" * 32))
        done = self.vpp("inspect", plan, "--set", "pipeline.cost_file=costs.json")
        self.assertEqual(done.returncode, 78)
        self.assertIn("was measured for another model", done.stderr)
        self.assertIn("--set pipeline.cost_file=costs.json --out ", done.stderr)

    def test_costs_of_other_microbatches_are_said_once_with_a_way_out(self):
        plan = self.plan(AUTO)
        self.ok("profile", plan)
        settings = ("--set", "pipeline.cost_file=costs.json", "--set", "pipeline.num_microbatches=8")
        said = re.compile(r"costs\.json\s+was\s+measured\s+with\s+microbatches\s+of\s+8\s+samples\s+instead\s+of\s+4,")
        trained = self.ok("train", plan, *settings, "--set", "train.steps=2", ranks=2).stderr
        self.assertEqual(len(said.findall(trained)), 1, trained)
        self.assertEqual(len(said.findall(self.ok("inspect", plan, *settings).stdout)), 1)
        advised = re.search(r"measure again: vpp (.*)", trained)[1].split()
        self.assertIn("pipeline.num_microbatches=8", advised)
        self.ok(*advised)
        again = self.ok("train", plan, *settings, "--set", "train.steps=2", "--set", "run.dir=again", ranks=2).stderr
        self.assertNotIn("measure again", again)

    def test_a_training_measures_once_and_a_resume_goes_by_the_same(self):
        plan = self.plan(AUTO)
        first = self.ok("train", plan, "--set", "train.steps=12", ranks=2).stderr
        self.assertIn('split_method = "AUTO": measured ', first)
        self.assertRegex(first, r"AUTO split: longest stage \S+ ms, lower bound \S+ ms, the next best cut has \S+ ms")
        self.assertRegex(first, r"measured costs predicted \S+ ms for the actions of a step; the last 8 steps took")
        measured = (self.folder / "run/costs.json").read_text()
        again = self.ok("train", plan, "--set", "train.steps=24", ranks=2).stderr
        self.assertNotIn("measured 1", again)
        self.assertEqual((self.folder / "run/costs.json").read_text(), measured)
        balance = [re.search(r"AUTO split: .*", text)[0] for text in (first, again)]
        self.assertEqual(balance[0], balance[1])
        self.assertIn("run/costs.json (digest ", self.ok("inspect", plan).stdout)
        # Another file moves the cut, and no bit.
        costs = json.loads(measured)
        costs["parts"][0].update(F=1000, B=2000)
        (self.folder / "run/costs.json").write_text(json.dumps(costs))
        moved = self.ok("train", plan, "--set", "train.steps=30", ranks=2).stderr
        self.assertNotIn(balance[0], moved)
        self.assertRegex(moved, r"AUTO split: longest stage 3\d\d\d\.\d+ ms")
        self.ok("train", self.plan(DIGITS, "one.toml"), "--set", "pipeline.num_stages=1", "--set", "train.steps=30",
                "--set", "run.dir=one")
        self.assertEqual(len(self.bits("run")), 30)
        self.assertEqual(self.bits("run"), self.bits("one"))

    def test_ranks_measure_messages_too(self):
        plan = self.plan(AUTO)
        said = self.ok("profile", plan, ranks=2).stdout
        self.assertRegex(said, r"a message takes \d+\.\d\d ms and \d+\.\d\d ms a MiB, measured between ranks 0 and 1")
        self.assertEqual(said.count("wrote costs.json in "), 1, "one rank speaks")
        costs = json.loads((self.folder / "costs.json").read_text())
        self.assertGreater(costs["transfer"], 0)
        self.assertNotEqual([costs["transfer"], costs["transfer_per_mib"]], [0.02, 0.2])
        refused = self.vpp("profile", plan, ranks=3)
        self.assertEqual(refused.returncode, 69, refused.stderr)
        unwritten = self.vpp("profile", plan, "--out", "missing/costs.json", ranks=2)
        self.assertNotEqual(unwritten.returncode, 0)
        self.assertIn("the folder missing is not there; make it first", unwritten.stderr)

    def test_a_backward_is_divided_where_that_pays(self):
        plan, file = self.plan(AUTO), self.folder / "costs.json"
        self.ok("profile", plan)
        costs = json.loads(file.read_text())
        words = [word for key in ("cost_file=costs.json", "schedule_type=AUTO", "num_microbatches=8",
                                  "search.moves=2000") for word in ("--set", f"pipeline.{key}")]
        divided = {}
        for half in (1, 2):  # I and W are as long as B together, and each by itself
            for part in costs["parts"]:
                part.update(F=1, B=2, I=half, W=half)
            file.write_text(json.dumps(costs | {"transfer": 0, "transfer_per_mib": 0}))
            schedule = json.loads(self.ok("inspect", plan, *words, "--json").stdout)["training"]["schedule"]
            kinds = [action["kind"] for actions in schedule["actions"] for action in actions]
            divided[half] = sum(kind in (I_KIND, W_KIND) for kind in kinds)
        self.assertGreater(divided[1], 0)
        self.assertEqual(divided[2], 0)
        said = self.ok("inspect", plan, *words[:2], "--set", "pipeline.schedule_type=ZERO_BUBBLE_H1").stdout
        self.assertIn("with 1F1B, as I and W together take 2.00 times", said.replace("\n  ", " "))

    def test_a_searched_schedule_is_searched_with_measured_costs(self):
        plan = self.plan(DIGITS + '[run]\ndir = "run"\n')
        words = ("--set", "pipeline.schedule_type=AUTO", "--set", "pipeline.search.moves=200", "--set", "train.steps=2")
        self.assertIn('schedule_type = "AUTO": measured ', self.ok("train", plan, *words, ranks=2).stderr)
        self.assertIn("run/costs.json (digest ", self.ok("inspect", plan, *words).stdout)


if __name__ == "__main__":
    main()
