"""vpp schedule: what it prints, and with which exit code."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ROOT, Case, main  # noqa: E402

SMALL = ("--schedule", "1F1B", "--pp", "2", "--microbatches", "4")
KEYS = ["schedule", "pp", "virtual_chunks", "num_microbatches", "makespan", "span", "bubble_makespan", "bubble_span",
        "peak_activations", "by_rank"]


class ScheduleCase(Case):
    def ok(self, *arguments: str) -> str:
        done = self.vpp("schedule", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, code: int, *arguments: str) -> str:
        done = self.vpp("schedule", *arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def file(self, text: str, name: str = "s.csv") -> str:
        (self.folder / name).write_text(text)
        return name


class Generated(ScheduleCase):
    def test_list(self):
        text = self.ok("list")
        rows = json.loads(self.ok("list", "--json"))
        for row in rows:
            self.assertIn(row["name"], text)
        self.assertTrue({"GPIPE", "1F1B", "INTERLEAVED_1F1B"} <= {row["name"] for row in rows})

    def test_show_draws(self):
        text = self.ok("show", *SMALL)
        self.assertIn("0 |F0 F1 .. .. B0 -- F2 B1 -- F3 B2 -- .. B3 --\n", text)
        self.assertNotIn("\x1b", text)
        self.assertTrue(all(len(line) <= 40 for line in self.ok("show", *SMALL, "--width", "40").splitlines()))

    def test_show_as_file_and_json(self):
        self.assertEqual(self.ok("show", *SMALL, "--csv"), "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
                         "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n")
        self.assertTrue(self.ok("show", *SMALL, "--csv", "--lowered").startswith("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0"))
        shown = json.loads(self.ok("show", *SMALL, "--json"))
        self.assertEqual(shown["actions"][1][:3], ["1F0", "1B0", "1F1"])

    def test_simulate_is_the_closed_form(self):
        result = json.loads(self.ok("simulate", *SMALL, "--costs", "F=2,I=1,W=0.5,comm=0", "--json"))
        self.assertEqual(list(result), KEYS)
        self.assertEqual((result["schedule"], result["pp"], result["virtual_chunks"]), ("1F1B", 2, 1))
        self.assertEqual(result["makespan"], (4 + 1) * 3.5)
        self.assertEqual(result["bubble_makespan"], 3.5 / (5 * 3.5))
        self.assertEqual(result["peak_activations"], [2, 1])
        self.assertEqual(result["by_rank"][1]["first_start"], 2)
        self.assertEqual(result["by_rank"][0]["idle"], 3.5)
        self.assertIn("makespan 17.500", self.ok("simulate", *SMALL, "--costs", "F=2,I=1,W=0.5"))

    def test_columns_stay_apart_whatever_the_costs(self):
        costs = ("--costs", "F=999999,B=999999")
        numbers = ("--pp", "2", "--microbatches", "1000")
        for table in (self.ok("simulate", *SMALL[:2], *numbers, *costs), self.ok("compare", *numbers, *costs)):
            rows = [line for line in table.splitlines() if re.match(r" *[01A-Z_]+[0-9A-Z_]* .*\d\.\d", line)]
            self.assertGreater(len(rows), 1, table)
            for row in rows:
                self.assertEqual(len(row.split()), 7 if row[0] == " " else 8, row)
                self.assertEqual(len(row), len(rows[0]), row)

    def test_half_a_backward_is_split(self):
        arguments = ("--schedule", "ZERO_BUBBLE_H1", "--pp", "2", "--microbatches", "4")
        self.assertIn("makespan 52.000", self.ok("simulate", *arguments, "--costs", "F=4,B=8"))
        self.assertIn("makespan 52.000", self.ok("simulate", *arguments, "--costs", "F=4,I=4,W=4"))
        self.assertIn("'I=4' needs B, or both", self.refused(2, "simulate", *arguments, "--costs", "F=4,I=4"))
        self.assertIn("'I=4' needs B, or both", self.refused(2, "compare", "--pp", "2", "--costs", "F=4,I=4"))
        self.assertIn("'I=4' needs B, or both", self.refused(2, "search", "--pp", "2", "--costs", "F=4,I=4"))

    def test_overlap_counts_by_the_percent(self):
        arguments = ("--schedule", "DUALPIPE_V", "--pp", "4", "--microbatches", "16")
        for percent, makespan in ((0, 51), (50, 44.5), (100, 38)):
            costs = f"F=1,B=2,overlap={percent}"
            result = json.loads(self.ok("simulate", *arguments, "--costs", costs, "--json"))
            self.assertEqual(result["makespan"], makespan)
            idle = sum(rank["idle"] for rank in result["by_rank"])
            self.assertAlmostEqual(result["bubble_makespan"], idle / (4 * makespan), places=12)
            rows = json.loads(self.ok("compare", *arguments[2:], "--costs", costs, "--json"))["rows"]
            bubbles = {row["schedule"]: row["bubble_makespan"] for row in rows}
            self.assertEqual(bubbles["DUALPIPE_V"], result["bubble_makespan"])
            self.assertGreaterEqual(min(bubbles.values()), 0)

    def test_costs_are_those_of_a_full_rank(self):
        arguments = ("simulate", "--schedule", "INTERLEAVED_1F1B", "--pp", "4", "--microbatches", "8", "--json")
        for per_rank in (2, 4):
            result = json.loads(self.ok(*arguments, "--virtual", str(per_rank)))
            self.assertEqual(result["makespan"], 8 * 3 + 3 * 3 / per_rank)
            self.assertEqual(result["virtual_chunks"], per_rank)

    def test_drawings_are_written(self):
        self.ok("show", *SMALL, "--svg", "s.svg", "--trace", "s.json")
        self.assertTrue((self.folder / "s.svg").read_text().startswith("<svg"))
        self.assertTrue(json.loads((self.folder / "s.json").read_text())["traceEvents"])
        self.assertIn("nowhere", self.refused(73, "show", *SMALL, "--svg", "nowhere/s.svg"))

    def test_from_a_plan(self):
        result = json.loads(self.ok("simulate", "--config", self.plan(DIGITS), "--json"))
        self.assertEqual([result[key] for key in KEYS[:4]], ["1F1B", 2, 1, 4])
        other = json.loads(self.ok("simulate", "--config", self.plan(DIGITS), "--microbatches", "6", "--json"))
        self.assertEqual(other["num_microbatches"], 6)

    def test_limit_and_groups_are_the_plans(self):
        plan = self.plan(DIGITS)

        def show(*settings: str) -> tuple[str, ...]:
            return ("show", "--config", plan, "--csv", *(word for one in settings for word in ("--set", one)))

        groups = ("pipeline.schedule_type=INTERLEAVED_1F1B", "pipeline.virtual_chunks=2")
        of_four = self.ok(*show(*groups, "pipeline.interleave_group_size=4"))
        self.assertEqual(of_four, self.ok(*show(*groups), "--group", "4"))
        self.assertNotEqual(of_four, self.ok(*show(*groups)))
        adaptive = ("pipeline.schedule_type=V_ADAPTIVE", "pipeline.virtual_chunks=2")
        little = self.ok(*show(*adaptive, "pipeline.memory_limit=1.5"))
        self.assertEqual(little, self.ok(*show(*adaptive), "--memory", "1.5"))
        self.assertNotEqual(little, self.ok(*show(*adaptive)))
        self.assertIn("left out: GPIPE: it keeps",
                      self.ok("compare", "--config", plan, "--set", "pipeline.memory_limit=2"))
        self.assertIn("memory_limit is in bytes, and a schedule alone has none (got 1.0 MiB)",
                      self.refused(2, *show(*adaptive, "pipeline.memory_limit=1MiB")))

    def test_compare(self):
        arguments = ("compare", "--pp", "4", "--microbatches", "12")
        rows = {row["schedule"]: row for row in json.loads(self.ok(*arguments, "--json"))["rows"]}
        self.assertEqual(rows["1F1B"]["makespan"], 45)
        self.assertEqual(rows["GPIPE"]["peak_activations"], 12)
        self.assertEqual(rows["1F1B"]["messages"], 2 * 3 * 12)
        limited = json.loads(self.ok(*arguments, "--memory", "4", "--json"))
        self.assertNotIn("GPIPE", [row["schedule"] for row in limited["rows"]])
        self.assertIn("left out: GPIPE: it keeps 12.00 microbatches", self.ok(*arguments, "--memory", "4"))
        self.assertIn("1F1B", self.ok(*arguments, "--costs", "F=1/1/1/3,I=1/1/1/3,W=1/1/1/3"))

    def test_search(self):
        head = "F=1/1/1/1/1/1/1/3,I=1/1/1/1/1/1/1/3,W=1/1/1/1/1/1/1/3,comm=0.1"
        numbers = ("--pp", "4", "--microbatches", "12", "--costs", head, "--memory", "4")
        arguments = ("search", *numbers, "--moves", "60000")
        found = json.loads(self.ok(*arguments, "--out", "auto.csv", "--json"))
        self.assertEqual(list(found)[: len(KEYS)], KEYS)
        self.assertEqual(found["virtual_chunks"], 2)  # the only one that has eight stages
        generated = json.loads(self.ok("compare", *numbers, "--virtual", "2", "--json"))["rows"]
        self.assertGreaterEqual(len(generated), 3)
        self.assertLess(found["bubble_makespan"], min(row["bubble_makespan"] for row in generated))
        self.assertLessEqual(found["lower_bound"], found["makespan"])
        self.assertLessEqual(max(found["peak_activations"]), 4)
        again = json.loads(self.ok("simulate", "--file", "auto.csv", "--costs", head, "--json"))
        self.assertEqual(again["makespan"], found["makespan"])
        self.assertIn("lower bound", self.ok(*arguments))
        self.assertIn("--pp is missing", self.refused(2, "search"))

    def test_a_search_makes_the_chosen_time_short(self):
        arguments = ("search", "--pp", "4", "--microbatches", "12", "--memory", "4", "--moves", "0", "--json")
        found = {name: json.loads(self.ok(*arguments, "--objective", name)) for name in ("makespan", "span")}
        self.assertEqual(json.loads(self.ok(*arguments)), found["makespan"])
        self.assertLess(found["makespan"]["makespan"], found["span"]["makespan"])
        self.assertLess(found["span"]["span"], found["makespan"]["span"])
        self.assertIn("{makespan,span}", self.refused(2, *arguments, "--objective", "time"))

    def test_a_search_says_how_many_stages_a_rank_it_tries(self):
        self.assertIn("default: the plan's, else the best of 1 to 4", " ".join(self.ok("search", "--help").split()))
        arguments = ("--microbatches", "8", "--moves", "0", "--json")
        self.assertEqual(json.loads(self.ok("search", "--pp", "2", *arguments))["virtual_chunks"], 4)
        plan = self.plan(DIGITS)
        of_plan = json.loads(self.ok("search", "--config", plan, *arguments))
        self.assertEqual(of_plan["virtual_chunks"], 1)
        example = self.ok("search", "--help").splitlines()[-1].split()
        self.assertEqual(example[:3], ["vpp", "schedule", "search"])
        found = json.loads(self.ok(*example[2:], "--moves", "0", "--json"))
        self.assertEqual(found["virtual_chunks"], 1)

    def test_what_is_wrong_is_said(self):
        self.assertIn("no schedule is named", self.refused(2, "simulate", "--pp", "2"))
        self.assertIn("--pp is missing", self.refused(2, "simulate", "--schedule", "1F1B"))
        self.assertIn("names no cost", self.refused(2, "simulate", *SMALL, "--costs", "X=1"))
        self.assertIn("did you mean '1F1B'", self.refused(78, "show", "--schedule", "1FB1", "--pp", "2"))
        self.assertIn("virtual_chunks = 1", self.refused(78, "show", *SMALL, "--virtual", "2"))
        self.assertIn("above the limit (got 1.00)", self.refused(78, "simulate", *SMALL, "--memory", "1"))
        self.assertIn("010 begins with a zero", self.refused(2, "simulate", *SMALL, "--microbatches", "010"))
        self.assertIn("the value is empty", self.refused(2, "simulate", *SMALL, "--costs", ""))
        self.assertIn("--group", self.refused(2, "search", "--pp", "2", "--microbatches", "4", "--group", "2"))
        for limit in ("nan", "inf", "-inf", "0", "-1", "much"):
            self.assertIn(f"it is a finite number above 0 (got {limit})",
                          self.refused(2, "compare", "--pp", "2", f"--memory={limit}"))
        self.refused(2, "simulate", *SMALL, "--pp", "0")
        self.refused(2, "show", *SMALL, "--file", "s.csv")
        self.refused(2)
        self.refused(2, "draw")


class Files(ScheduleCase):
    def test_check(self):
        name = self.file("0F0,,0B0\n,1F0,1B0\n")
        self.assertIn("s.csv: a sound schedule of computing actions: 2 ranks, 2 stages", self.ok("check", name))
        self.assertEqual(json.loads(self.ok("check", name, "--json"))["rank_of_stage"], [0, 1])
        self.assertIn("s.csv:2:2: cell 2 '1X0'", self.refused(65, "check", self.file("0F0,0B0\n1F0,1X0\n")))
        self.assertIn("0B0 comes before 0F0", self.refused(65, "check", self.file("0B0,0F0\n")))
        self.assertIn("s.csv:1:1: cell 1 '0REDUCE_GRAD': it comes before the stage's last weight gradient",
                      self.refused(65, "check", self.file("0REDUCE_GRAD,0F0,0B0\n")))
        self.refused(66, "check", "nowhere.csv")

    def test_blank_lines_and_a_byte_order_mark(self):
        name = self.file("\ufeff0F0,0B0\n1F0,1B0\n\n")
        self.assertIn("2 ranks, 2 stages", self.ok("check", name))
        name = self.file("0F0,0B0\n\n1F0,1B0\n")
        self.assertIn("s.csv:2:0: the line has no actions, and would be rank 1", self.refused(65, "check", name))

    def test_show_and_simulate_read_files(self):
        name = self.file("0F0,3F0,0F1,3F1,3B0,3B1,0B0,0B1\n1F0,2F0,1F1,2F1,2B0,2B1,1B0,1B1\n")
        result = json.loads(self.ok("simulate", "--file", name, "--json"))
        self.assertEqual([result[key] for key in KEYS[:4]], ["CUSTOM", 2, 2, 2])
        self.assertEqual(result["peak_activations"], [2, 2])
        self.assertIn("CUSTOM: 2 ranks, 4 stages", self.ok("show", "--file", name))
        self.assertIn("above the limit (got 0.50)", self.refused(78, "simulate", "--file", name, "--memory", "0.5"))
        for number in ("--pp", "--virtual", "--microbatches", "--group"):
            self.refused(2, "simulate", "--file", name, number, "2")

    def test_ranks_with_different_numbers_of_stages(self):
        numbers = range(8)
        first = [f"0{kind}{i}" for kind in "FB" for i in numbers]
        second = [f"{stage}F{i}" for i in numbers for stage in (1, 2, 3)]
        second += [f"{stage}B{i}" for i in numbers for stage in (3, 2, 1)]
        name = self.file(",".join(first) + "\n" + ",".join(second) + "\n")
        for costs in ((), ("--costs", "F=1,B=2")):
            result = json.loads(self.ok("simulate", "--file", name, *costs, "--json"))
            self.assertEqual(result["makespan"], 27)
            self.assertEqual([rank["busy"] for rank in result["by_rank"]], [24, 24])
        name = self.file("0F0,1F0,1B0,0B0\n2F0,2B0\n")  # three stages on two ranks
        self.assertEqual(json.loads(self.ok("simulate", "--file", name, "--costs", "F=4", "--json"))["makespan"], 12)

    def test_convert(self):
        name = self.file("0F0,0F1,,0B0,0W0,0BW1\n")
        self.assertIn("vpp schedule convert s.csv", self.refused(65, "check", name))
        self.assertEqual(self.ok("convert", name), "0F0,0F1,,0I0,0W0,0B1\n")
        name = self.file("0F0,0B0\n1F0,1B0\n")
        lowered = self.ok("convert", name, "--lowered")
        self.assertEqual(lowered, "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n")
        self.assertEqual(self.ok("convert", self.file(lowered), "--compute"), "0F0,0B0\n1F0,1B0\n")
        done = self.vpp("schedule", "convert", self.file("0UNSHARD,0F0,0B0,0RESHARD\n"))
        self.assertEqual((done.stdout, done.returncode), ("0F0,0B0\n", 0))
        self.assertIn("dropped 2 cells of UNSHARD and RESHARD", done.stderr)


class PlannedStages(ScheduleCase):
    """Files with transfers, for stages that are no chain."""

    def manual(self) -> str:
        done = self.vpp("init", "manual", "man")
        self.assertEqual(done.returncode, 0, done.stderr)
        return "man/plan.toml"

    def written(self, plan: str, *arguments: str) -> str:
        """A lowered file, and proof that the plan takes it."""
        text = self.ok("show", "--config", plan, *arguments, "--csv", "--lowered")
        self.file(text)
        plain = [word for word in arguments if not word.startswith("--schedule=")]
        done = self.vpp("inspect", plan, *plain, "--set=pipeline.schedule_type=CUSTOM",
                        f"--set=pipeline.schedule_file={self.folder}/s.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("for the stages of the plan", self.ok("check", "s.csv", "--config", plan, *plain))
        return text

    def test_a_plan_takes_the_file_that_it_wrote(self):
        plan = self.manual()
        for schedule in ("1F1B", "GPIPE", "ZERO_BUBBLE_H1"):
            for overlap in ("true", "false"):
                text = self.written(plan, f"--schedule={schedule}", f"--set=pipeline.overlap_p2p_comm={overlap}")
                self.assertIn("2RECV_F0<0,2RECV_F0<1", text)
                self.assertNotIn("1RECV_F0", text)

    def test_tied_weights_have_no_cells(self):
        plan = str(ROOT / "configs/gpt_tied.toml")
        for schedule in ("1F1B", "ZERO_BUBBLE_H1"):
            self.assertNotIn(">0", self.written(plan, f"--schedule={schedule}", "--set=run.dir=tied"))
        waits = self.refused(78, "show", "--config", plan, "--schedule", "1F1B", "--csv", "--lowered", "--set",
                             "pipeline.overlap_p2p_comm=false")
        self.assertIn("none for gradients of tied weights", waits)
        self.assertIn("leave --lowered out (schedule CUSTOM: it never ends where a send waits for its receive", waits)

    def test_other_commands_take_file_and_plan(self):
        plan = self.manual()
        text = self.written(plan)
        took = json.loads(self.ok("simulate", "--file", "s.csv", "--config", plan, "--json"))
        self.assertEqual(sum(rank["sends"] for rank in took["by_rank"]), 24)  # three values from two stages
        self.assertEqual(self.ok("show", "--file", "s.csv", "--config", plan, "--csv", "--lowered"), text)
        custom = self.ok("simulate", "--config", plan, "--set=pipeline.schedule_type=CUSTOM",
                         f"--set=pipeline.schedule_file={self.folder}/s.csv")
        self.assertIn("CUSTOM: 3 ranks", custom)
        sized = self.refused(2, "simulate", "--config", plan, "--set=pipeline.schedule_type=CUSTOM",
                             f"--set=pipeline.schedule_file={self.folder}/s.csv", "--pp", "7")
        self.assertIn("--group are for a schedule that is generated, and the plan's is a file", sized)
        self.file(self.ok("convert", "s.csv", "--compute"), "c.csv")
        self.assertEqual(self.ok("convert", "c.csv", "--lowered", "--config", plan), text)

    def test_what_does_not_fit_is_refused(self):
        plan = self.manual()
        self.written(plan)
        error = self.refused(65, "check", "s.csv")
        self.assertIn("no value comes to stage 2 from rank 0", error)
        self.assertIn("s.csv: its transfers were held against stages in a chain; --config PLAN takes those of a plan",
                      error)
        self.assertIn("comm= and transfer= by place are for stages in a chain, and here they are those of the plan",
                      self.refused(2, "simulate", "--file", "s.csv", "--config", plan, "--costs", "comm=1/2"))
        self.assertIn("with a plan --lowered writes the transfers of its model, which has 3 stages on 3 ranks (got 2 "
                      "stages on 2 ranks); change the plan with --set instead of --pp and --virtual",
                      self.refused(2, "show", "--config", plan, "--pp", "2", "--csv", "--lowered"))
        self.file("0F0,0B0\n1F0,1B0\n")
        self.assertIn("s.csv has 2 ranks (expected 3, as pipeline.num_stages says)",
                      self.refused(78, "check", "s.csv", "--config", plan))
        self.assertIn("--config requires --lowered", self.refused(2, "convert", "s.csv", "--config", plan))


class Custom(ScheduleCase):
    """schedule_type = CUSTOM in a plan."""

    def inspect(self, *arguments: str):
        return self.vpp("inspect", self.plan(DIGITS), "--set", "pipeline.schedule_type=CUSTOM", *arguments)

    def test_a_file_is_the_schedule(self):
        self.file(self.ok("show", "--schedule", "GPIPE", "--pp", "2", "--microbatches", "4", "--csv"))
        done = self.inspect("--set", "pipeline.schedule_file=s.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("CUSTOM: 2 ranks, 2 stages, 4 microbatches", done.stdout)

    def test_bits_do_not_depend_on_it(self):
        self.file("0F0,0F1,0B1,0F2,0B0,0F3,0B3,0B2\n1F0,1F1,1B1,1B0,1F2,1F3,1B3,1B2\n")
        for runs in (1, 2):
            done = self.vpp("verify", self.plan(DIGITS), "--steps", "3", "--set", "pipeline.schedule_type=CUSTOM",
                            "--set", "pipeline.schedule_file=s.csv", "--set", f"train.accumulate={runs}", ranks=2)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("bitwise equal", done.stdout)

    def test_a_v_placement_runs_and_evaluates(self):
        self.file("0F0,3F0,0F1,3F1,3B0,3B1,0B0,0B1\n1F0,2F0,1F1,2F1,2B0,2B1,1B0,1B1\n")
        done = self.vpp("verify", self.plan(DIGITS), "--steps", "3", "--set", "pipeline.schedule_type=CUSTOM", "--set",
                        "pipeline.schedule_file=s.csv", "--set", "pipeline.virtual_chunks=2", "--set",
                        "pipeline.num_microbatches=2", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("bitwise equal", done.stdout)

    def test_what_does_not_fit_is_refused(self):
        self.assertEqual(self.inspect().returncode, 78)
        self.file("0F0,0B0\n1F0,1B0\n")
        done = self.inspect("--set", "pipeline.schedule_file=s.csv")
        self.assertEqual(done.returncode, 78)
        self.assertIn("num_microbatches", done.stderr)
        self.file("0F0,0B0\n1F0,1X0\n")
        done = self.inspect("--set", "pipeline.schedule_file=s.csv")
        self.assertEqual(done.returncode, 65)
        self.assertIn("s.csv:2:2:", done.stderr)
        self.assertEqual(self.inspect("--set", "pipeline.schedule_file=none.csv").returncode, 66)


class Auto(ScheduleCase):
    """schedule_type = AUTO in a plan."""

    SET = ("--set", "pipeline.schedule_type=AUTO", "--set", "pipeline.virtual_chunks=auto", "--set",
           "pipeline.search.moves=2000")

    def program(self, *settings: str) -> dict:
        done = self.vpp("inspect", self.plan(DIGITS), *settings, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_command_has_the_schedule_of_the_training(self):
        plan = self.plan(DIGITS)
        shown = self.ok("show", "--config", plan, *self.SET, "--csv")
        found = json.loads(self.ok("search", "--config", plan, *self.SET, "--out", "auto.csv", "--json"))
        self.assertEqual((self.folder / "auto.csv").read_text(), shown)
        self.assertLessEqual(found["lower_bound"], found["makespan"])
        self.assertLessEqual(found["makespan"], found["best_generated"])
        program = self.program(*self.SET)
        chunks = program["search"]["stages_per_rank"]
        self.assertEqual(chunks, found["virtual_chunks"])
        saved = self.program("--set", "pipeline.schedule_type=CUSTOM", "--set", "pipeline.schedule_file=auto.csv",
                             "--set", f"pipeline.virtual_chunks={chunks}")
        self.assertEqual(saved["training"]["schedule"]["actions"], program["training"]["schedule"]["actions"])

    def test_a_schedule_is_that_of_one_pipeline_run(self):
        runs = ("--set", "train.accumulate=2")
        program = self.program(*self.SET, *runs)
        searched = self.vpp("schedule", "search", "--config", self.plan(DIGITS), *self.SET, *runs, "--out", "auto.csv")
        self.assertIn("4 microbatches", searched.stdout)
        self.assertEqual(self.ok("show", "--config", self.plan(DIGITS), *self.SET, *runs, "--csv"),
                         (self.folder / "auto.csv").read_text())
        chunks = program["search"]["stages_per_rank"]
        saved = self.program("--set", "pipeline.schedule_type=CUSTOM", "--set", "pipeline.schedule_file=auto.csv",
                             "--set", f"pipeline.virtual_chunks={chunks}", *runs)
        self.assertEqual(saved["training"]["schedule"]["actions"], program["training"]["schedule"]["actions"])

    def test_a_plan_of_another_schedule_can_be_searched(self):
        searched = self.ok("search", "--config", self.plan(DIGITS), "--moves", "500", "--virtual", "2", "--json")
        self.assertEqual(json.loads(searched)["virtual_chunks"], 2)

    def test_inspect_says_how_it_was_found_and_kept(self):
        text = self.vpp("inspect", self.plan(DIGITS), *self.SET, "--set", "pipeline.memory_limit=3").stdout
        for part in ("found from", "the best generated one is", "lower bound", "gap", "a rank holds at most",
                     "FLOPs; a byte sent counts 10", "vpp schedule search --config", "schedule_file = \"auto.csv\""):
            self.assertIn(part, text)

    def test_a_cost_file_decides(self):
        self.file('{"unit": "ms", "transfer": 0.25, "modules": {"": {"F": 2, "B": 5}}}', "costs.json")
        text = self.vpp("inspect", self.plan(DIGITS), "--set", "pipeline.cost_file=costs.json").stdout
        self.assertIn("costs.json (digest ", text)
        self.assertIn(" ms\n", text)
        self.file('{"modules": {"": {"F": 2}}}', "costs.json")
        done = self.vpp("inspect", self.plan(DIGITS), "--set", "pipeline.cost_file=costs.json")
        self.assertEqual(done.returncode, 65)
        self.assertIn("needs B, or both I and W", done.stderr)

    def test_what_does_not_fit_is_refused(self):
        for settings, part in ((("pipeline.virtual_chunks=auto",), "needs schedule_type = \"AUTO\" (got \"1F1B\")"),
                               (("pipeline.search.seed=3",), "needs schedule_type = \"AUTO\""),
                               (("pipeline.memory_limit=1",), "1F1B is above pipeline.memory_limit"),
                               (("pipeline.schedule_type=AUTO", "pipeline.memory_limit=1KiB"), "one microbatch")):
            done = self.vpp("inspect", self.plan(DIGITS), *(f"--set={setting}" for setting in settings))
            self.assertEqual(done.returncode, 78, done.stdout)
            self.assertIn(part, done.stderr)
            self.assertIn("--set:1:", done.stderr)
        self.assertIn("model of a plan", self.refused(2, "show", "--schedule", "AUTO", "--pp", "2"))


if __name__ == "__main__":
    main()
