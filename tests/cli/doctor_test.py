"""`vpp doctor`: one screen, and the code that a training would end with."""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, FULL, Case, main  # noqa: E402


class Doctor(Case):
    def expect_screen(self, text: str) -> None:
        for line in text.splitlines():
            self.assertLessEqual(len(line), 80 if str(self.folder) not in line else 200, line)
        self.assertNotIn("\033", text)

    def test_a_machine_without_a_plan(self):
        done = self.vpp("doctor", "-n", "2")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stderr, "")
        self.expect_screen(done.stdout)
        for pattern in (r"ok       build     vpp [\d.]+ with LibTorch 2\.11\.0, kernels for \w+",
                        r"(ok|note)  +MPI  +Open MPI [\d.]+, MPI_THREAD_MULTIPLE, starts 2 ranks here",
                        r"(ok|note)  +cores  +2 ranks ", r"(ok|note)  +GPU  +\w", r"ok  +disk  +runs: [\d.]+ .iB/s",
                        r"no problems, \w+ notes?\n$"):
            self.assertRegex(done.stdout, pattern)

    def test_a_good_plan(self):
        plan = self.plan(DIGITS)
        done = self.vpp("doctor", plan)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.expect_screen(done.stdout)
        for topic in ("plan", "model", "data", "schedule", "memory", "disk", "run"):
            self.assertRegex(done.stdout, rf"(?m)^(ok|note) +{topic} ")
        self.assertIn("2 ranks (pp 2 x dp 1), 30 steps of 32", re.sub(r"\s+", " ", done.stdout))
        self.assertTrue(done.stdout.endswith(f"\nstart with: vpp run {plan}\n"))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.toml"], "it leaves nothing behind")

    def test_memory_where_mpirun_places_the_ranks(self):
        done = self.vpp("doctor", self.plan(DIGITS), "--json", environment={"SLURM_JOB_ID": "1"})
        memory = next(one for one in json.loads(done.stdout)["findings"] if one["topic"] == "memory")
        self.assertRegex(memory["text"], r"^where 2 ranks run is for mpirun to say; the fullest takes up to [1-9]")

    def test_it_ends_with_the_line_of_what_it_looked_at(self):
        plan = self.plan(DIGITS, "a plan.toml")
        done = self.vpp("doctor", plan, "-n", "2", "--set", "train.steps=5")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(done.stdout.endswith(f"\nstart with: vpp run -n 2 '{plan}' --set train.steps=5\n"))

    def test_a_run_folder_that_is_a_link_to_nothing(self):
        (self.folder / "link").symlink_to("nowhere/x")
        for command in ("doctor", "train"):
            done = self.vpp(command, self.plan(DIGITS), "--set", "run.dir=link", "--set", "pipeline.num_stages=1")
            self.assertEqual(done.returncode, 73, done.stdout + done.stderr)

    def test_json(self):
        found = json.loads(self.vpp("doctor", self.plan(DIGITS), "--set", "run.dir=plan.toml/x", "--json").stdout)
        self.assertEqual(found["exit_code"], 73)
        disk = next(finding for finding in found["findings"] if finding["topic"] == "disk")
        self.assertEqual((disk["level"], disk["code"]), ("problem", 73))
        self.assertIn("is no folder", disk["text"])

    def test_its_code_is_that_of_a_training(self):
        plan = self.plan(DIGITS)
        (self.folder / "broken.pt").write_bytes(b"PK\3\4 this is no model")
        saved = self.vpp("train", plan, "--set", "train.steps=2", "--set", "run.dir=seen", ranks=2)
        self.assertEqual(saved.returncode, 0, saved.stderr)
        cases = [(0, "run.dir=new"), (78, "train.stepps=3"), (66, "model.file=none.pt"), (65, "model.file=broken.pt"),
                 (73, "run.dir=plan.toml/x"), (77, "run.dir=seen", "train.seed=9"), (69, "mesh.dp=2")]
        if FULL:
            cases += [(78, "pipeline.forward_only=true"), (66, "data.train.label=none.npy"),
                      (65, "data.train.label=plan.toml"), (78, "pipeline.num_microbatches=5"),
                      (73, "run.dir=plan.toml"), (78, "optimizer.group=[{match=['nothing*']}]"),
                      (0, "run.dir=seen", "train.steps=2")]
        for code, *settings in cases:
            options = [item for setting in settings for item in ("--set", setting)]
            with self.subTest(settings):
                doctor = self.vpp("doctor", plan, "-n", "2", *options)
                self.assertEqual(doctor.returncode, code, doctor.stdout)
                train = self.vpp("train", plan, *options, "--set", "train.steps=2", ranks=2) \
                    if "train.steps=2" not in settings else self.vpp("train", plan, *options, ranks=2)
                self.assertEqual(train.returncode, code, train.stderr)

    def test_a_run_whose_checkpoints_are_all_damaged(self):
        plan = self.plan(DIGITS)
        options = ("--set", "pipeline.num_stages=1", "--set", "train.steps=2", "--set", "run.dir=run")
        self.assertEqual(self.vpp("train", plan, *options).returncode, 0)
        (self.folder / "run/checkpoints/step-00000002/manifest.json").write_text("{}")
        done = self.vpp("doctor", plan, *options)
        self.assertEqual(done.returncode, 65, done.stdout)
        self.assertIn("none of the checkpoints in run can be resumed: run/checkpoints/step-00000002/manifest.json: cut",
                      re.sub(r"\s+", " ", done.stdout))
        self.assertEqual(self.vpp("train", plan, *options).returncode, 65)
        self.assertEqual(self.vpp("train", plan, *options, "--set", "checkpoint.resume=no").returncode, 0)

    def test_a_run_folder_in_use(self):
        job = self.start("train", self.plan(DIGITS), "--set", "run.dir=run", "--set", "train.steps=100000", ranks=2)
        while not self.bits("run"):
            self.assertIsNone(job.poll(), (self.folder / "err").read_text())
        done = self.vpp("doctor", self.plan(DIGITS), "--set", "run.dir=run")
        self.assertEqual(done.returncode, 73, done.stdout)
        self.assertIn("is held by process", re.sub(r"\s+", " ", done.stdout))
        self.assertIsNone(job.poll())

    def test_who_held_a_run_folder_stays_known(self):
        (self.folder / "run/checkpoints").mkdir(parents=True)
        lock = self.folder / "run/.lock"
        lock.write_text("the one before")
        before = lock.stat().st_mtime_ns
        done = self.vpp("doctor", self.plan(DIGITS), "--set", "run.dir=run")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(lock.read_text(), "the one before")
        self.assertEqual(lock.stat().st_mtime_ns, before)

    def test_no_mpirun(self):
        done = self.vpp("doctor", environment={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 69, done.stdout)
        self.assertIn("apt-get install openmpi-bin", done.stdout)

    def test_a_session_folder_that_cannot_be_written(self):
        done = self.vpp("doctor", "-n", "2", environment={"OMPI_MCA_orte_tmpdir_base": self.plan(DIGITS)})
        self.assertEqual(done.returncode, 69, done.stdout)
        self.assertIn("mpirun does not start 2 ranks here", done.stdout)
        self.assertIn("export TMPDIR=/var/tmp", done.stdout)


if __name__ == "__main__":
    main()
