"""What commands of the real binary say when they refuse, to the letter, and a training beside its steps."""

import fcntl
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import ENVIRONMENT, Case, main  # noqa: E402


class Messages(Case):
    def example(self) -> str:
        """A plan for one rank and three steps that takes a second."""
        done = self.vpp("init", "digits-cnn", "example")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = self.folder / "example" / "plan.toml"
        text = plan.read_text().replace("steps             = 100", "steps             = 3")
        plan.write_text(text.replace("num_stages       = 2", "num_stages       = 1"))
        return "example/plan.toml"

    def refused(self, code: int, message: str, *arguments: str, ranks: int = 0) -> None:
        done = self.vpp(*arguments, ranks=ranks)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("vpp: error: " + message, done.stderr.splitlines())

    def test_words_that_do_not_fit_together(self):
        for message, *arguments in (
            ("no plan is named; try vpp run plan.toml", "run"),
            ("vpp inspect needs no ranks; type it without run", "run", "inspect", "plan.toml"),
            ("The following argument was not expected: --nope; see vpp train --help", "run", "train", "a", "--nope"),
            ("PLAN (or --config) is required; see vpp inspect --help", "inspect"),
            ("PLAN (or --config) is required; see vpp train --help", "run", "train", "--set", "train.steps=1"),
            ("PLAN|DIR (or --config) is required; see vpp checkpoint list --help", "checkpoint", "list"),
            ("--keep is required; see vpp checkpoint prune --help", "checkpoint", "prune", "a", "--keep-best", "1"),
            ("A subcommand is required; see vpp --help", "--nope"),
            ("unknown command 'trian'; did you mean 'train'? See vpp --help", "trian", "plan.toml"),
            ("--pp is missing: the ranks of the pipeline", "schedule", "show", "--schedule", "1F1B"),
            ("the example own-model is made for a model file; add --model FILE", "init", "own-model"),
            ("--model is for the example own-model; manual makes a model of its own", "init", "manual", "--model", "a"),
            ("vpp export writes --safetensors FILE, --torchscript FILE, or both; see vpp export --help", "export", "a"),
        ):  # fmt: skip
            with self.subTest(message):
                self.refused(2, message, *arguments)

    def test_a_training_says_how_to_stop_it_and_that_it_is_done(self):
        plan = self.example()
        done = self.vpp("train", plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("info: to stop: SIGUSR1, SIGTERM and Ctrl-C save and exit 85\n", done.stderr)
        self.assertRegex(done.stderr, r"info: \d+ parameters in 1 stage on 1 rank, 1F1B, ")
        two = self.vpp("train", plan, "--set", "pipeline.num_stages=2", "--set", "run.dir=two", ranks=2)
        self.assertEqual(two.returncode, 0, two.stderr)
        self.assertIn("info: to stop: SIGUSR1 to mpirun saves and exits 85; Ctrl-C and SIGTERM leave about a second "
                      "for that\n", two.stderr)
        again = self.vpp("train", plan)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("info: nothing to do: 3 of 3 steps are done\n", again.stderr)
        fewer = self.vpp("train", plan, "--set", "train.steps=2")
        self.assertEqual(fewer.returncode, 0, fewer.stderr)
        self.assertIn("info: nothing to do: 3 steps are done, the plan wants 2\n", fewer.stderr)
        end = (self.folder / "runs/example/end.json").read_text()
        self.assertEqual(json.loads(end), {"exit_code": 0, "text": "3 steps are done"})
        (self.folder / "runs/example/checkpoints/step-00000003").rename(self.folder / "copy")
        self.refused(2, "vpp checkpoint list takes a plan or a run folder; for one checkpoint there is vpp checkpoint "
                     "show", "checkpoint", "list", "copy")

    def test_a_warm_up_that_is_longer_than_all_epochs_is_refused_before_a_run_folder_is_made(self):
        plan = self.folder / self.example()
        plan.write_text(plan.read_text().replace("steps             = 3", "epochs = 1"))
        message = ("the warm-up is longer than the training (got warmup_steps 51, train.epochs 1 = 50 steps); lower "
                   "it, or for a short trial --set lr_schedule.warmup_steps=0\n")
        for command in (("train",), ("train", "--dry-run")):
            for ranks in (0, 2):
                stages = ("--set", f"pipeline.num_stages={max(ranks, 1)}")
                done = self.vpp(*command, "example/plan.toml", *stages, "--set", "lr_schedule.warmup_steps=51",
                                ranks=ranks)
                with self.subTest(command, ranks=ranks):
                    self.assertEqual(done.returncode, 78, done.stderr)
                    self.assertEqual(done.stderr.count(message), 1, done.stderr)
                    self.assertFalse((self.folder / "runs").exists())

    def test_a_run_folder_is_one_jobs(self):
        plan = self.example()
        run = self.folder / "runs" / "example"
        run.mkdir(parents=True)
        with (run / ".lock").open("w") as lock:
            lock.write("the test")
            lock.flush()
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.refused(73, "runs/example/.lock is held by the test; a run folder is one job's: wait for it, or name "
                         "another run.dir", "train", plan)

    def test_a_lock_that_cannot_be_made_is_not_waited_for(self):
        plan = self.example()
        (self.folder / "runs" / "example" / ".lock").mkdir(parents=True)
        self.refused(73, "cannot create runs/example/.lock: Is a directory", "train", plan)

    def test_a_training_does_not_replace_the_plan_of_a_person(self):
        plan = self.example()
        before = (self.folder / plan).read_bytes()
        done = self.vpp("train", plan, "--set", "run.dir=example")
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("run.dir is the folder of this plan, so a training would replace example/plan.toml by the plan "
                      "with all its defaults and without its comments; set run.dir to another folder, or give the plan "
                      "another name", done.stderr)
        self.assertEqual((self.folder / plan).read_bytes(), before)
        (self.folder / plan).rename(self.folder / "example/mine.toml")
        for again in ("mine.toml", "plan.toml"):
            done = self.vpp("train", f"example/{again}", "--set", "run.dir=example")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_a_plan_must_say_for_a_command(self):
        plan = self.example()
        path = self.folder / plan
        path.write_text("\n".join(line for line in path.read_text().splitlines() if not line.startswith("steps")))
        done = self.vpp("train", plan)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("[train] names neither steps nor epochs; write how long to train, as in steps = 200", done.stderr)

    def test_only_a_training_needs_the_length_of_steps(self):
        plan = self.example()
        step = ("--set", "lr_schedule.kind=step", "--set", "lr_schedule.decay_steps=0")
        weights = ("--initial-weights", *step)
        for command in (("inspect", plan, *step), ("eval", plan, *weights),
                        ("export", plan, *weights, "--safetensors", "w.safetensors")):
            done = self.vpp(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
        for command in ("train", "verify"):
            done = self.vpp(command, plan, *step)
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn("--set:1:18: lr_schedule.kind = \"step\" needs lr_schedule.decay_steps, the steps from one "
                          "drop to the next (got 0, so that the rate never drops); set it, or take kind \"constant\"",
                          done.stderr)

    def test_stages_with_files_of_their_own_are_exported_into_a_folder(self):
        self.assertEqual(self.vpp("init", "manual", "example").returncode, 0)
        export = ["export", "example/plan.toml", "--initial-weights", "--torchscript"]
        (self.folder / "file").touch()
        self.refused(73, "the stages of this plan have files of their own, so --torchscript names a folder, and file "
                     "cannot be one: Not a directory", *export, "file")
        name = "s" * 253
        self.refused(78, f"the stage name '{name}.pt' cannot name a file of out; choose another", *export, "out",
                     "--set", f"pipeline.stage[0].name={name}")

    def test_output_that_does_not_arrive_is_an_error(self):
        for command in (["--version"], ["train", "--help"], ["schedule", "show", "--schedule", "1F1B", "--pp", "4"]):
            with self.subTest(" ".join(command)), open("/dev/full", "w") as full:
                done = subprocess.run(self.command(command, 0), cwd=self.folder, env=ENVIRONMENT, text=True,
                                      stdout=full, stderr=subprocess.PIPE, timeout=60)
                self.assertEqual(done.returncode, 74, done.stderr)
                self.assertEqual(done.stderr, "vpp: error: standard output did not take all that was printed; make "
                                              "room where it goes, or let its reader stay\n")

    def test_verify_says_how_many_ranks_it_needs(self):
        self.refused(69, "a layout needs 2 ranks (got 1); start it with: vpp run -n 2 verify ... (or mpirun -np 2 vpp "
                     "verify ...)", "verify", self.example(), "--stages", "2")


if __name__ == "__main__":
    main()
