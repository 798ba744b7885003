"""Whole jobs under a real mpirun: equality, memory, resume, evaluation, disks that fail."""

import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from run_state import checkpoints  # noqa: E402
from vpp_process import DIGITS, FAULTS, ROOT, Case, main  # noqa: E402


class Equality(Case):
    def equal(self, ranks: int, *settings: str, plan: str | None = None) -> None:
        arguments = [item for setting in settings for item in ("--set", setting)]
        done = self.vpp("verify", plan or self.plan(DIGITS), *arguments, "--steps", "4", "--json", ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(json.loads(done.stdout)["equal"])

    def test_schedules_and_methods(self):
        pairs = zip(("UNIFORM", "PARAMETERS", "FLOPS"), (("GPIPE", 1), ("INTERLEAVED_1F1B", 2), ("1F1B", 1)))
        for method, (schedule, chunks) in pairs:
            with self.subTest(f"{method} {schedule}"):
                self.equal(2, f"pipeline.split_method={method}", f"pipeline.schedule_type={schedule}",
                           f"pipeline.virtual_chunks={chunks}")

    def test_a_searched_schedule(self):
        self.equal(2, "pipeline.schedule_type=AUTO", "pipeline.virtual_chunks=auto", "pipeline.search.moves=2000")

    def test_fewer_microbatches_than_ranks(self):
        self.equal(4, "pipeline.num_stages=4", "pipeline.num_microbatches=2")

    def test_without_overlap(self):
        self.equal(2, "pipeline.overlap_p2p_comm=false")

    def test_dropout_keeps_its_masks(self):
        self.equal(2, f"model.file={ROOT}/models/out/vgg.pt")

    def test_a_matrix_in_one_job(self):
        done = self.vpp("verify", self.plan(DIGITS), "--all-schedules", "--cuts", "random:2", "--stages", "1,2,3",
                        "--microbatches", "1,4", "--steps", "2", "--json", ranks=3)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        self.assertTrue(result["equal"])
        self.assertGreater(result["layouts"], 50)
        self.assertEqual(result["references"], 2)
        refused = sum(len(layouts) for layouts in result["layouts_refused"].values())
        self.assertEqual(refused, sum(tally["refused"] for tally in result["schedules"].values()))
        again = self.vpp("verify", self.plan(DIGITS), "--stages", "4", ranks=2)
        self.assertEqual(again.returncode, 69, again.stderr)

    def test_several_pipeline_runs_in_a_matrix(self):
        done = self.vpp("verify", self.plan(DIGITS), "--set", "train.accumulate=3", "--all-schedules", "--cuts",
                        "random:1", "--stages", "1,3", "--microbatches", "1,4", "--steps", "2", "--json", "--set",
                        "train.global_batch_size=24", ranks=3)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(json.loads(done.stdout)["equal"])

    def test_frozen_and_drawn_parameters_in_a_matrix(self):
        init = "[{match=['*.bias'], kind='uniform', low=-0.1, high=0.1}, {match=['block*'], kind='normal', std=0.2}]"
        for setting in ("model.freeze=['block1.*', 'block2.bn.*']", "model.freeze=['*', '!block3.*', '!head.bias']",
                        f"model.init={init}"):
            done = self.vpp("verify", self.plan(DIGITS), "--set", setting, "--all-schedules", "--cuts", "random:1",
                            "--stages", "1,3", "--microbatches", "4", "--steps", "2", "--json", ranks=3)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(json.loads(done.stdout)["equal"])

    def test_deferred_batch_norm_in_a_matrix(self):
        key = ("--set", "pipeline.deferred_batch_norm=true")
        done = self.vpp("verify", self.plan(DIGITS), *key, "--set", "pipeline.recompute.what=stage", "--all-schedules",
                        "--cuts", "random:1", "--stages", "2,3", "--microbatches", "1,5", "--steps", "2", "--json",
                        "--set", "train.global_batch_size=20", ranks=3)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(json.loads(done.stdout)["equal"])
        self.assertGreater(json.loads(done.stdout)["layouts"], 30)

    def test_manual_points(self):
        self.equal(4, plan=str(ROOT / "configs/eight_mlp.toml"))


class Profiles(Case):
    """Steps that were looked at, and the dry run, which looks before the first one."""

    def profiled(self, run: str, steps: int, *more: str) -> str:
        done = self.vpp("train", self.plan(DIGITS), "--set", f"run.dir={run}", "--set", f"train.steps={steps}", *more,
                        ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_a_profile_changes_no_bit_and_shows_the_step(self):
        said = self.profiled("looked", 12, "--profile", "5..7")
        self.profiled("plain", 12)
        self.assertEqual(self.bits("looked"), self.bits("plain"))
        self.assertFalse((self.folder / "plain/profile").exists())
        files = sorted(path.name for path in (self.folder / "looked/profile").iterdir())
        self.assertEqual(files, ["timeline.json"] + [f"trace-step{step}.json" for step in (5, 6, 7)])
        self.assertRegex(said, r"(?m)^0 \|[F0-9B.-]+$")
        self.assertRegex(said, r"the clocks of the ranks agree within [0-9.]+ ms")
        trace = json.loads((self.folder / "looked/profile/trace-step6.json").read_text())
        events = trace["traceEvents"]
        ends = [{event["id"]: event for event in events if event["ph"] == phase} for phase in "sf"]
        self.assertEqual(ends[0].keys(), ends[1].keys())
        self.assertGreaterEqual(len(ends[0]), 8)
        error_us = 1e3 * trace["otherData"]["clock_error_ms"]
        for number, sent in ends[0].items():
            self.assertGreaterEqual(ends[1][number]["ts"] - sent["ts"], -2 * error_us)
        self.assertTrue(all(event["dur"] >= 0 for event in events if event["ph"] == "X"))
        names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(names, {"step", "stage 0", "stage 1", "reading data", "waiting for data"})

    def test_a_rank_that_stood_still_shows_in_the_trace(self):
        job = self.start("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", "train.steps=200",
                         "--set", "train.global_batch_size=256", "--profile", "1..200", ranks=2)
        while not self.bits("run"):
            self.assertIsNone(job.poll())
            time.sleep(0.01)
        stopped = self.pids(job)[1]
        for _ in range(3):  # one may hit it between two steps
            os.kill(stopped, signal.SIGSTOP)
            time.sleep(0.6)
            os.kill(stopped, signal.SIGCONT)
            time.sleep(0.05)
        self.assertEqual(job.wait(timeout=120), 0)
        seen = []  # by step: what took rank 0 and rank 1 longest, in ms
        for path in (self.folder / "run/profile").glob("trace-*.json"):
            events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
            seen.append([max(event["dur"] for event in events if event["pid"] == rank) / 1e3 for rank in (0, 1)])
        self.assertEqual(len(seen), 200)
        # Rank 1 stood still in one of them, and rank 0 waited for it.
        self.assertGreater(max(min(step) for step in seen), 500)

    def test_the_last_lines_and_metrics_show_the_pipeline(self):
        said = self.profiled("run", 6)
        self.assertIn("pipeline of 1F1B, milliseconds of a step, the mean of the steps 3 to 6", said)
        steps = [line for line in self.metrics("run") if line["event"] == "step"]
        for line in steps:
            self.assertEqual([stage["rank"] for stage in line["stages"]], [0, 1])
            self.assertTrue(all(stage["forward_ms"] > 0 and stage["backward_ms"] > 0 for stage in line["stages"]))
        (pipeline,) = [line for line in self.metrics("run") if line["event"] == "pipeline"]
        self.assertEqual((pipeline["first_step"], pipeline["step"]), (3, 6))

    def test_steps_that_cannot_be_profiled_are_2(self):
        for steps, text in (("x", "expected 5 for five steps"), ("90..91", "this run does the steps 1 to 30")):
            done = self.vpp("train", self.plan(DIGITS), "--profile", steps, ranks=2)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(text, done.stderr)

    def test_a_dry_run_needs_and_leaves_nothing(self):
        for more in ((), ("--set", "pipeline.schedule_type=ZERO_BUBBLE_H1"), ("--set", "mesh.dp=2")):
            with self.subTest(more):
                done = self.vpp("train", self.plan(DIGITS), "--dry-run", *more, ranks=4 if "mesh.dp=2" in more else 2)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, r"^dry run: a microbatch of [48] samples through 2 stages on [24] ranks")
                self.assertRegex(done.stdout, r"(?m)^    0     1 +[0-9.]+ Ki?B  float32  \[")
                self.assertRegex(done.stdout, r"a step: 4 microbatches by \w+ in about [0-9.]+ ms, bubble [0-9.]+ %")
                self.assertTrue(done.stdout.endswith("nothing was updated and nothing was written\n"))
                self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.toml"])

    def test_a_dry_run_fails_as_training_would(self):
        plan = self.plan(DIGITS)
        self.assertEqual(self.vpp("train", plan, "--dry-run", ranks=3).returncode, 69)
        self.assertEqual(self.vpp("train", plan, "--dry-run", "--profile", "3", ranks=2).returncode, 2)
        self.assertEqual(self.vpp("train", plan, "--dry-run", "--set", "model.file=none.pt", ranks=2).returncode, 66)


class Runs(Case):
    def train(self, run: str, *settings: str, ranks: int = 2) -> None:
        arguments = [item for setting in (f"run.dir={run}", *settings) for item in ("--set", setting)]
        done = self.vpp("train", self.plan(DIGITS), *arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_layout_changes_no_bit_of_the_loss_lines(self):
        self.train("one", "pipeline.num_stages=1", ranks=1)
        self.train("two")
        self.train("four", "pipeline.schedule_type=INTERLEAVED_1F1B", "pipeline.virtual_chunks=2")
        self.assertEqual(len(self.bits("one")), 30)
        self.assertEqual(self.bits("one"), self.bits("two"))
        self.assertEqual(self.bits("one"), self.bits("four"))
        self.train("runs", "train.accumulate=2", "pipeline.num_microbatches=2", "pipeline.schedule_type=GPIPE")
        self.assertEqual(self.bits("one"), self.bits("runs"))
        self.train("other", "train.seed=5")
        self.assertNotEqual(self.bits("one"), self.bits("other"))

    def test_evaluation_changes_nothing(self):
        self.train("without")
        self.train("with", "train.eval_every=1")
        self.assertEqual(self.bits("without"), self.bits("with"))
        self.assertEqual(len([line for line in self.metrics("with") if line["event"] == "eval"]), 31)

    def test_resume_at_another_layout_is_bitwise(self):
        self.train("whole")
        self.train("part", "train.steps=12")
        self.train("part", "pipeline.num_stages=1", "train.steps=20", "train.accumulate=4",
                   "pipeline.num_microbatches=1", ranks=1)
        self.train("part", "pipeline.schedule_type=AUTO", "pipeline.search.moves=1000", "train.steps=24")
        self.train("part", "pipeline.num_stages=4", "pipeline.schedule_type=GPIPE", ranks=4)
        self.assertEqual(self.bits("whole"), self.bits("part"))

    def evaluations(self, run: str) -> dict[int, str]:
        return {line["step"]: str(line["loss"]) for line in self.metrics(run) if line["event"] == "eval"}

    def test_deferred_batch_norm_shows_in_evaluation_and_survives_resume(self):
        deferred = ("pipeline.deferred_batch_norm=true", "train.eval_every=10")
        self.train("usual", "train.eval_every=10")
        self.train("whole", *deferred)
        self.assertEqual(self.bits("whole"), self.bits("usual"))  # training does not read running statistics
        self.assertNotEqual(self.evaluations("whole")[30], self.evaluations("usual")[30])
        self.train("part", *deferred, "train.steps=15")
        self.train("part", *deferred, "pipeline.num_stages=4", "pipeline.recompute.what=stage", ranks=4)
        self.assertEqual(self.evaluations("part")[30], self.evaluations("whole")[30])
        done = self.vpp("train", self.plan(DIGITS), "--set", "run.dir=part", "--set", "train.steps=31", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("deferred_batch_norm was true, now false", done.stderr)

    def test_what_is_wrong_with_a_command_line_is_said_once(self):
        for words in (("trane", "plan.toml"), ("train", "plan.toml", "--stops"), ("schedule", "show", "--pp", "x")):
            done = self.vpp(*words, ranks=3)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stderr.count("vpp: error"), 1, done.stderr)

    def test_resume_as_another_run_is_refused(self):
        self.train("run", "train.steps=4")
        for setting in ("train.seed=7", "train.global_batch_size=64", "optimizer.kind=sgd", "model.freeze=['head.*']"):
            done = self.vpp("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", setting, ranks=2)
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertEqual(done.stderr.count("vpp: error"), 1, done.stderr)


class Disks(Case):
    def train(self, steps: int, fault: str = "") -> subprocess.CompletedProcess:
        return self.vpp("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", f"train.steps={steps}", "--set",
                        "checkpoint.every=2", ranks=2, environment={"LD_PRELOAD": FAULTS, "VPP_DISK_FAULT": fault})

    def test_a_checkpoint_of_which_a_piece_cannot_be_read_is_not_skipped(self):
        self.assertEqual(self.train(4).returncode, 0)
        done = self.train(6, f"0 pread /shard-00001 1 1 {errno.EIO} 0")
        self.assertEqual(done.returncode, 74, done.stderr)
        self.assertIn("cannot read run/checkpoints/step-00000004/shard-00001.safetensors: Input/output error; no older",
                      done.stderr)

    def test_a_save_whose_folder_cannot_be_made_now_is_tried_again(self):
        done = self.train(4, f"0 mkdir /checkpoints/ 1 1 {errno.ESTALE} 0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the save of step 2 failed (cannot create the folder run/checkpoints/.tmp-step-00000002-",
                      done.stderr)
        self.assertIn(": Stale file handle); the checkpoints before it are as they were", done.stderr)
        self.assertEqual([path.name for path in checkpoints(self.folder / "run")], ["step-00000004"])


class Memory(Case):
    """Live bytes of a step against the schedule's theory; eight equal blocks, activations far above the weights."""

    def measure(self, schedule: str, chunks: int = 1, config: str = "eight_mlp.toml", batch: int = 512,
                precision: str = "fp32") -> list[dict]:
        """Of each rank what it held, and what `vpp inspect` says."""
        plan = str(ROOT / "configs" / config)
        # Where ranks send by NCCL, steps that go through the host hold more.
        steps = 6 if os.environ.get("VPP_SOFT_CARDS") == "4" else 2
        settings = (f"run.dir={schedule}", f"train.steps={steps}", "train.eval_every=0",
                    f"train.global_batch_size={batch}", "pipeline.num_microbatches=16",
                    f"pipeline.schedule_type={schedule}", f"pipeline.virtual_chunks={chunks}",
                    "lr_schedule.warmup_steps=1", f"train.precision={precision}",
                    "pipeline.cuda_graphs=false")
        arguments = [item for setting in settings for item in ("--set", setting)]
        done = self.vpp("train", plan, *arguments, ranks=4)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = (pathlib.Path(self.folder) / schedule / "metrics.jsonl").read_text().splitlines()
        ranks = next(event["ranks"] for event in map(json.loads, lines) if event["event"] == "memory")
        page = json.loads(self.vpp("inspect", plan, *arguments, "--json").stdout)
        for rank, shown in zip(ranks, page["inspection"]["ranks"]):
            rank["shown_bytes"] = shown["activation_bytes"] + shown["gradient_bytes"] + shown["receive_bytes"]
        return ranks

    def expect_shown(self, rank: dict) -> None:
        """Cards give memory in pieces of 512 bytes."""
        self.assertLessEqual(rank["activation_bytes"], 1.05 * rank["shown_bytes"])
        self.assertGreaterEqual(rank["activation_bytes"], 0.6 * rank["shown_bytes"])

    def test_inspect_knows_what_a_transformer_keeps(self):
        for schedule in ("GPIPE", "ZERO_BUBBLE_H1"):
            for rank in self.measure(schedule, config="quickstart.toml", batch=32):
                with self.subTest(f"{schedule}: {rank}"):
                    self.expect_shown(rank)

    def test_microbatches_share_the_half_precision_copies_of_weights(self):
        for rank in self.measure("GPIPE", batch=256, precision="bf16"):
            with self.subTest(f"{rank}"):
                self.expect_shown(rank)  # 16 copies of each weight would be far above it

    def test_each_rank_holds_what_its_schedule_says(self):
        held, simulated = {}, {}
        for schedule, chunks in (("1F1B", 1), ("GPIPE", 1), ("ZERO_BUBBLE_H1", 1), ("INTERLEAVED_1F1B", 2),
                                 ("ZERO_BUBBLE_V", 2), ("V_MIN", 2)):
            ranks = self.measure(schedule, chunks)
            held[schedule] = [rank["activation_bytes"] for rank in ranks]
            simulated[schedule] = [rank["least_simulated_bytes"] for rank in ranks]
            for rank in ranks:
                with self.subTest(f"{schedule}: {rank}"):
                    self.assertGreaterEqual(rank["activation_bytes"], 0.9 * rank["least_simulated_bytes"])
                    self.assertLessEqual(rank["activation_bytes"], 1.1 * rank["most_simulated_bytes"])
                    self.expect_shown(rank)
        self.assertGreater(held["1F1B"][0], 2 * held["1F1B"][3])
        self.assertLess(max(held["V_MIN"]), 0.9 * max(held["1F1B"]))
        self.assertGreater(min(held["GPIPE"]), 2.5 * max(held["1F1B"]))
        # Stages as measured, where no message waits in memory, as on a slow machine they do.
        # 1F1B: P - r microbatches; ZERO_BUBBLE_V: flat; V_MIN: 2 microbatches instead of 4; GPIPE: all 16.
        self.assertEqual(simulated["1F1B"], sorted(simulated["1F1B"], reverse=True))
        self.assertLess(max(simulated["ZERO_BUBBLE_V"]), 1.15 * min(simulated["ZERO_BUBBLE_V"]))
        self.assertLess(max(simulated["V_MIN"]), 0.75 * max(simulated["1F1B"]))


class StagesByHand(Case):
    """mode = "MANUAL_EAGER": stages of files or of one model's submodules are the one model."""

    TOWERS = (ROOT / "configs/two_towers.toml").read_text().replace('"../models', f'"{ROOT}/models')
    HEAD, TAIL = TOWERS[: TOWERS.index("[[pipeline.stage]]")], TOWERS[TOWERS.index("[optimizer]") :]
    STAGES = TOWERS[len(HEAD) : -len(TAIL)]
    ONE = f'[model]\nfile = "{ROOT}/models/out/two_towers.pt"\n'

    def train(self, run: str, text: str, *settings: str, ranks: int) -> None:
        settings = (f"run.dir={run}", "train.steps=6", "train.eval_every=3", *settings)
        arguments = [item for setting in settings for item in ("--set", setting)]
        done = self.vpp("train", self.plan(text, run + ".toml"), *arguments, ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stderr)

    def evaluations(self, run: str) -> list[str]:
        return [str(line["loss"]) for line in self.metrics(run) if line["event"] == "eval"]

    def equal(self, plan: str, *settings: str, ranks: int) -> None:
        arguments = [item for setting in settings for item in ("--set", setting)]
        done = self.vpp("verify", plan, *arguments, "--steps", "4", "--json", ranks=ranks)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(json.loads(done.stdout)["equal"])

    def test_two_towers_are_those_of_one_model(self):
        one = self.ONE + self.HEAD.replace("MANUAL_EAGER", "GRAPH_EAGER") + self.TAIL
        by_module = re.sub(r'file    = .*two_towers_(\w+).pt"', r'modules = ["\1"]', self.STAGES)
        self.train("one", one, "pipeline.num_stages=1", ranks=1)
        self.train("files", self.TOWERS, ranks=4)
        self.train("modules", self.ONE + self.HEAD + by_module + self.TAIL, "pipeline.virtual_chunks=2",
                   "pipeline.schedule_type=INTERLEAVED_1F1B", ranks=2)
        for run in ("files", "modules"):
            self.assertEqual(self.bits(run), self.bits("one"), run)
            self.assertEqual(self.evaluations(run), self.evaluations("one"), run)
        self.assertEqual(len(self.evaluations("one")), 3)
        swapped = self.TOWERS.replace('"mixed", "up", "gate"', '"mixed", "gate", "up"')
        self.assertNotEqual(swapped, self.TOWERS)
        self.train("swapped", swapped, ranks=4)
        self.assertNotEqual(self.bits("swapped"), self.bits("one"))

    def test_pipelines_by_hand_are_bitwise(self):
        plan = str(ROOT / "configs/two_towers.toml")
        self.equal(plan, ranks=4)
        self.equal(plan, "pipeline.virtual_chunks=2", "pipeline.schedule_type=LOOPED_BFS", ranks=2)

    def test_layouts_of_stages_by_hand(self):
        def verify(*arguments: str, ranks: int, code: int = 0):
            done = self.vpp("verify", str(ROOT / "configs/two_towers.toml"), "--steps", "2", "--json", *arguments,
                            ranks=ranks)
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            return done.stderr if code else json.loads(done.stdout)

        replicas = verify("--stages", "4", "--replicas", "1,2", ranks=8)
        self.assertTrue(replicas["equal"])
        self.assertEqual((replicas["layouts"], replicas["references"]), (2, 2))
        chunks = verify("--virtual", "2,4", "--set", "pipeline.schedule_type=LOOPED_BFS", ranks=2)
        self.assertEqual((chunks["layouts"], chunks["layouts_refused"]), (2, {}))
        self.assertEqual(verify("--stages", "2,3", "--cuts", "random:2", ranks=3)["layouts"], 4)
        self.assertIn("--all-splits has no meaning", verify("--all-splits", ranks=4, code=2))
        self.assertIn("a layout needs 4 ranks (got 2)", verify("--stages", "4", ranks=2, code=69))

    def test_resume_at_another_layout_is_bitwise(self):
        self.train("whole", self.TOWERS, ranks=4)
        self.train("part", self.TOWERS, "train.steps=3", ranks=4)
        self.train("part", self.TOWERS, "pipeline.virtual_chunks=4", "pipeline.schedule_type=INTERLEAVED_1F1B", ranks=1)
        self.assertEqual(self.bits("part"), self.bits("whole"))

    def test_a_chain_of_files_is_the_one_model(self):
        one = (ROOT / "configs/eight_mlp.toml").read_text().replace('"../models', f'"{ROOT}/models')
        stages = "".join(f'''
[[pipeline.stage]]
name = "mlp{i}"
file = "{ROOT}/models/out/mlp_mlp{i}.pt"
inputs = ["{f"h{i - 1}" if i > 1 else "x"}"]
outputs = ["h{i}"]
''' for i in range(1, 9))
        chain = re.sub(r"\[model\]\nfile.*\n", "", one).replace("GRAPH_EAGER", "MANUAL_EAGER")
        chain = re.sub(r"(split_method|split_points|smallest_unsplittable_units) .*\n", "", chain)
        chain = chain.replace("[optimizer]", stages + "[optimizer]")
        self.train("one", one, ranks=4)
        self.train("chain", chain, ranks=4)
        self.assertEqual(self.bits("chain"), self.bits("one"))
        self.equal(self.plan(chain, "chain.toml"), ranks=4)


class Evaluation(Case):
    def eval(self, *arguments: str, ranks: int, settings: tuple[str, ...] = (), code: int = 0) -> dict:
        sets = [item for setting in ("run.dir=run", *settings) for item in ("--set", setting)]
        done = self.vpp("eval", self.plan(DIGITS), *sets, "--json", *arguments, ranks=ranks)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout) if code == 0 else {"error": done.stderr}

    def test_a_checkpoint_gives_the_same_bytes_on_any_layout(self):
        done = self.vpp("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", "train.eval_every=5",
                        "--set", "checkpoint.every=15", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        losses = {line["step"]: line["loss"] for line in self.metrics("run") if line["event"] == "eval"}
        outputs = []
        for ranks, chunks in ((1, 1), (2, 1), (2, 2), (4, 1)):
            folder = f"out{ranks}{chunks}"
            result = self.eval("--outputs", folder, ranks=ranks, settings=(f"pipeline.num_stages={ranks}",
                                                                           f"pipeline.virtual_chunks={chunks}"))
            self.assertEqual(result["step"], 30)
            self.assertEqual(result["samples"], 288)
            self.assertEqual(str(result["loss"]), str(losses[30]))
            self.assertEqual(result["outputs"], [f"{folder}/output0.npy"])
            self.assertEqual([entry.name for entry in (self.folder / folder).iterdir()], ["output0.npy"])
            outputs.append((self.folder / folder / "output0.npy").read_bytes())
        self.assertEqual(len(set(outputs)), 1)
        older = self.eval("--checkpoint", "run/checkpoints/step-00000015", ranks=2)
        self.assertEqual(str(older["loss"]), str(losses[15]))
        initial = self.eval("--initial-weights", ranks=2)
        self.assertEqual(str(initial["loss"]), str(losses[0]))
        self.assertIn("--overwrite", self.eval("--outputs", "out21", ranks=2, code=73)["error"])
        # 288 samples in microbatches of 5
        sizes = ("train.global_batch_size=20", "pipeline.num_microbatches=4")
        whole = self.eval("--initial-weights", ranks=2, settings=sizes)
        self.assertEqual((whole["samples"], whole["dropped"]), (288, 0))
        full = self.eval("--initial-weights", "--drop-last", ranks=2, settings=sizes)
        self.assertEqual((full["samples"], full["dropped"]), (285, 3))
        self.assertNotEqual(str(full["loss"]), str(whole["loss"]))

    def test_what_is_not_there_is_said(self):
        self.assertIn("--initial-weights", self.eval(ranks=2, code=66)["error"])

    def test_a_plan_that_only_evaluates_trains_nothing(self):
        only = ("pipeline.forward_only=true",)
        self.eval("--initial-weights", "--batches", "1", ranks=2, settings=only)
        for command in ("train", "verify"):
            done = self.vpp(command, self.plan(DIGITS), "--set", *only, ranks=2)
            self.assertEqual(done.returncode, 78)
            self.assertIn("vpp eval", done.stderr)


if __name__ == "__main__":
    main()
