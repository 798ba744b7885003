"""vpp sweep and scripts/sweep: lines that work, runs that go on, mistakes before anything starts."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ENVIRONMENT, ROOT, VPP, Case, children, is_alive, main, only_full  # noqa: E402

ONE_RANK = ("--set", "pipeline.num_stages=1")


class Sweep(Case):
    def setUp(self):
        super().setUp()
        self.config = self.plan(DIGITS, "tiny.toml")

    def sweep(self, *arguments: str, **options):
        return self.vpp("sweep", self.config, *ONE_RANK, *arguments, **options)

    def error(self) -> str:
        return (self.folder / "err").read_text()

    def results(self, *runs: str) -> list[tuple]:
        """What must not depend on interruptions."""
        done = self.vpp("compare", "--json", *runs)
        self.assertEqual(done.returncode, 0, done.stderr)
        keys = ("state", "step", "total_steps", "last_loss", "best_loss", "best_loss_step")
        return [tuple(run[key] for key in keys) + (str(run["settings"]),) for run in json.loads(done.stdout)["runs"]]


class Lines(Sweep):
    def test_a_line_for_each_combination(self):
        done = self.sweep("--grid", "optimizer.lr=1e-3,0.01", "--grid", "optimizer.betas=[0.9, 0.95],[0.9,0.99]")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = [shlex.split(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(lines), 4)
        name = "runs/tiny-sweep/optimizer.lr=1e-3,optimizer.betas=0.9+0.95"
        self.assertEqual(lines[0], [VPP, "run", self.config, "--set", "pipeline.num_stages=1", "--set",
                                    "optimizer.lr=1e-3", "--set", "optimizer.betas=[0.9, 0.95]", "--set",
                                    f"run.dir={name}"])
        self.assertIn(f"--set run.dir={name}\n", done.stdout)  # nothing in it that a shell would change
        self.assertFalse((self.folder / "runs").exists())

    def test_options_of_run_and_the_folder_go_into_the_lines(self):
        done = self.vpp("sweep", self.config, "--grid", "train.seed=1", "-n", "2", "--host", "localhost:2", "--folder",
                        "my runs", "--log-level", "warn")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(shlex.split(done.stdout),
                         [VPP, "run", "-n", "2", "--host", "localhost:2", self.config, "--set", "train.seed=1", "--set",
                          "run.dir=my runs/train.seed=1", "--log-level", "warn"])

    def test_a_pasted_line_runs_and_the_sweep_passes_over_it(self):
        grid = ("--set", "train.steps=3", "--grid", "train.seed=1,2")
        line = self.sweep(*grid).stdout.splitlines()[0]
        pasted = subprocess.run(["sh", "-c", line], cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True,
                                timeout=120)
        self.assertEqual(pasted.returncode, 0, pasted.stderr)
        done = self.sweep(*grid, "--go")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("vpp sweep: 1 of 2, runs/tiny-sweep/train.seed=1: finished before\n", done.stderr)
        self.assertEqual(done.stderr.count("the plain line is"), 1)
        self.assertTrue(done.stdout.rstrip().splitlines()[-1].startswith("step"), "the curves end the report")
        again = self.sweep(*grid, "--go")
        self.assertEqual((again.returncode, again.stderr.count("finished before")), (0, 2), again.stderr)


class Mistakes(Sweep):
    def refused(self, code: int, *arguments: str) -> str:
        done = self.sweep(*arguments, "--go")
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        self.assertFalse((self.folder / "runs").exists())
        return done.stderr

    def test_all_are_shown_at_once_with_place_and_remedy(self):
        text = self.refused(78, "--grid", "optimizer.lr=1,,2", "--grid", "train.seed=[1", "--grid", "run.dir=../../x")
        for part in ("--grid:1:16: a value is missing here", "    optimizer.lr=1,,2\n                   ^",
                     "--grid:1:12: this [ is not closed", "choose where these lie by --folder"):
            self.assertIn(part, text)

    def test_every_plan_is_checked_before_the_first_run(self):
        text = self.refused(78, "--grid", "optimizer.lr=0.1,fast", "--grid", "train.sede=1,2",
                            "--set", "train.steps=-1")
        self.assertIn("--grid:1:18: ", text)
        self.assertIn(f"    optimizer.lr=0.1,fast\n{' ' * 21}^", text)
        self.assertIn("--grid:1:7: unknown key 'sede' in [train]", text)
        self.assertIn("did you mean 'seed'", text)
        self.assertIn("--set:1:13: ", text)
        self.assertEqual(text.count("^"), 3)  # what several combinations share is said once
        self.assertIn("unknown key 'folder' in [run]", self.refused(78, "--grid", "run.folder=../../x"))

    def test_what_the_hosts_have_no_room_for(self):
        text = self.refused(69, "--grid", "pipeline.num_stages=1,2", "--host", "localhost")
        self.assertIn("--host localhost has room for too few ranks", text)

    def test_the_rest_of_the_command_line(self):
        self.assertEqual(self.vpp("sweep", self.config).returncode, 2)
        self.assertIn("is no name of a folder", self.refused(2, "--grid", "train.seed=1", "--folder", "a\nb"))
        nested = self.sweep("--grid", "train.seed=1",
                            environment={"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"})
        self.assertEqual(nested.returncode, 2, nested.stderr)
        self.assertEqual(self.sweep("--grid", "train.seed=1", "--go", environment={"PATH": "/nowhere"}).returncode, 69)

    def test_hostile_values_stay_in_their_words_and_out_of_the_names(self):
        values = ["../../x", "$(touch owned)", "a b", "a'b", "`touch owned`", "x;touch owned", "*", '"a,b"', '"\u00e4"']
        done = self.sweep("--grid", "model.file=" + ",".join(values))
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(values))
        for line, value in zip(lines, values):
            words = shlex.split(line)
            self.assertIn(f"model.file={value}", words)
            folder = words[-1].removeprefix("run.dir=")
            self.assertRegex(folder, r"^runs/tiny-sweep/model\.file=[\w.+-]+$")
            subprocess.run(["sh", "-c", "printf '%s\\n' " + line], cwd=self.folder, check=True, capture_output=True)
        self.assertFalse((self.folder / "owned").exists())
        text = self.refused(78, "--grid", "model.file=a\x1b[2J")
        self.assertIn("there is a control character", text)
        self.assertNotIn("\x1b", text)


class Going(Sweep):
    steps = ("--set", "train.steps=100", "--set", "train.global_batch_size=256", "--set", "checkpoint.every=1000",
             "--grid", "train.seed=1,2,3")

    def start_and_wait_for_the_second(self) -> subprocess.Popen:
        """Until five steps of it are done that were not before."""
        second = "cut/train.seed=2"
        before = len(self.bits(second))
        job = self.start("sweep", self.config, *ONE_RANK, *self.steps, "--folder", "cut", "--go", ranks=0)
        deadline = time.monotonic() + 240
        while len(self.bits(second)) < before + 5:
            self.assertIsNone(job.poll(), self.error())
            self.assertLess(time.monotonic(), deadline, self.error())
            time.sleep(0.01)
        return job

    def stop(self) -> None:
        job = self.start_and_wait_for_the_second()
        os.kill(job.pid, signal.SIGINT)
        self.assertEqual(job.wait(60), 85, self.error())
        self.assertIn("vpp sweep: stopped as asked by a signal; the same command goes on from there", self.error())
        self.assertFalse((self.folder / "cut/train.seed=3").exists())
        table = (self.folder / "out").read_text()
        self.assertIn("C  cut/train.seed=3\n", table)
        self.assertIn("no step", table)

    def kill(self) -> None:
        job = self.start_and_wait_for_the_second()
        self.assertIn("resumed after step", self.error())
        ranks = self.pids(next(iter(children(job.pid))))
        os.kill(job.pid, signal.SIGKILL)
        job.wait(60)
        deadline = time.monotonic() + 60  # its job saves and ends by itself
        while any(map(is_alive, ranks)):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    @only_full
    def test_a_stopped_and_a_killed_sweep_go_on(self):
        """The same command runs the rest; what comes out is that of a sweep that nothing happened to."""
        self.stop()
        self.kill()
        done = self.sweep(*self.steps, "--folder", "cut", "--go", timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 3, cut/train.seed=1: finished before", done.stderr)
        self.assertEqual(done.stderr.count("the plain line is"), 2)
        self.assertIn("resumed after step", done.stderr)
        whole = self.sweep(*self.steps, "--folder", "whole", "--go", timeout=300)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        runs = [f"train.seed={seed}" for seed in (1, 2, 3)]
        found = self.results(*(f"cut/{run}" for run in runs))
        self.assertEqual(found, self.results(*(f"whole/{run}" for run in runs)))
        self.assertEqual([line[0] for line in found], ["finished"] * 3)
        for run in runs:
            self.assertEqual(self.bits(f"cut/{run}"), self.bits(f"whole/{run}"))

    def test_a_failure_keeps_no_other_from_running(self):
        done = self.sweep("--set", "train.steps=20", "--grid", "optimizer.lr=1e30,0.003", "--go")
        self.assertEqual(done.returncode, 79, done.stderr)
        self.assertIn("1 of 2, runs/tiny-sweep/optimizer.lr=1e30: failed with 79", done.stderr)
        self.assertIn("failed with 79", done.stdout)
        self.assertEqual(len(self.bits("runs/tiny-sweep/optimizer.lr=0.003")), 20)

    def test_runs_with_other_settings_are_left_alone(self):
        grid = ("--grid", "train.seed=1", "--go")
        self.assertEqual(self.sweep("--set", "train.steps=3", *grid).returncode, 0)
        before = self.bits("runs/tiny-sweep/train.seed=1")
        other = self.sweep("--set", "train.steps=3", "--set", "optimizer.lr=0.1", *grid)
        self.assertEqual(other.returncode, 77, other.stderr)
        self.assertIn("runs/tiny-sweep/train.seed=1 holds a run with other settings (optimizer.lr = 0.003, here 0.1); "
                      "choose another --folder, or remove it", other.stderr)
        self.assertEqual(self.bits("runs/tiny-sweep/train.seed=1"), before)
        longer = self.sweep("--set", "train.steps=5", *grid)
        self.assertEqual(longer.returncode, 0, longer.stderr)
        self.assertIn("resumed after step 3", longer.stderr)
        self.assertEqual(self.bits("runs/tiny-sweep/train.seed=1")[:3], before)


class Script(Case):
    def test_the_plain_shell_sweep_works_as_it_is(self):
        for _ in range(2):
            done = subprocess.run([ROOT / "scripts/sweep", "runs"], cwd=self.folder, text=True, capture_output=True,
                                  env=ENVIRONMENT | {"VPP_BUILD": str(pathlib.Path(VPP).parent)}, timeout=400)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("  finished  "), 4, done.stdout)
            for name in ("lr=0.01,schedule=1F1B", "lr=0.03,schedule=GPIPE"):
                self.assertIn(f"{self.folder}/runs/{name}\n", done.stdout)
            header = next(line for line in done.stdout.splitlines() if line.startswith("run "))
            self.assertEqual(header.split()[:4], ["run", "schedule_type", "lr", "state"])
        # The schedule changes no bit.
        self.assertEqual(self.bits("runs/lr=0.01,schedule=1F1B"), self.bits("runs/lr=0.01,schedule=GPIPE"))
        self.assertNotEqual(self.bits("runs/lr=0.01,schedule=1F1B"), self.bits("runs/lr=0.03,schedule=1F1B"))


if __name__ == "__main__":
    main()
