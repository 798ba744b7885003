"""vpp report, and what a training shows on a terminal and elsewhere: the real binary."""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import DIGITS, ENVIRONMENT, MPIRUN, VPP, Case, main  # noqa: E402

LIVE = "\x1b[?7l"  # what every drawing of the live line begins with


class Report(Case):
    def run_folder(self, name: str) -> pathlib.Path:
        return self.record_run(name, [8, 7, 6, 5, 4])

    def test_a_page_is_written_into_the_run_folder(self):
        self.run_folder("one")
        done = self.vpp("report", "one")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "one/report.html\n", ""))
        self.assertIn("<b>5/9</b>", (self.folder / "one" / "report.html").read_text())

    def test_several_runs_have_a_page_here_or_where_it_is_wanted(self):
        self.run_folder("one"), self.run_folder("two")
        self.assertEqual(self.vpp("report", "one", "two").stdout, "report.html\n")
        self.assertEqual(self.vpp("report", "one", "two", "-o", "both.html").stdout, "both.html\n")
        self.assertIn("2 runs side by side", (self.folder / "both.html").read_text())

    def test_damage_is_a_note(self):
        (self.run_folder("one") / "metrics.jsonl").open("a").write("torn")
        done = self.vpp("report", "one")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr, "vpp: note: one: metrics.jsonl has 1 line that is no event\n")

    def test_what_is_no_run_is_66(self):
        done = self.vpp("report", "none")
        self.assertEqual(done.returncode, 66)
        self.assertEqual(done.stderr, "vpp: error: no metrics.jsonl in none; name a folder that vpp train wrote, as in "
                                      "runs/gpt\n")

    def test_a_place_that_cannot_be_written_is_73(self):
        self.run_folder("one")
        self.assertEqual(self.vpp("report", "one", "-o", "none/page.html").returncode, 73)

    def test_help_ends_with_an_example(self):
        text = self.vpp("report", "--help").stdout
        self.assertTrue(text.rstrip().endswith("vpp report runs/gpt runs/gpt2 -o both.html"), text)


class Screen(Case):
    """A training whose standard output is a terminal of 100 columns."""

    def setUp(self):
        super().setUp()
        self.config = self.plan(DIGITS + '[report]\nevery = 10\n[run]\ndir = "run"\n')

    def on_terminal(self, command: list, columns: int = 100, **environment: str) -> tuple[int, str]:
        """The exit code, and what the terminal got from both streams."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        process = subprocess.Popen(command, cwd=self.folder, stdin=slave, stdout=slave, stderr=slave,
                                   env=ENVIRONMENT | {"TERM": "xterm"} | environment)
        os.close(slave)
        text = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        os.close(master)
        return process.wait(), text.decode()

    @staticmethod
    def alone(config: str, *more: str) -> list:
        return [VPP, "train", config, "--set", "pipeline.num_stages=1", *more]

    def test_a_terminal_has_a_live_line_that_is_gone_at_the_end(self):
        code, text = self.on_terminal(self.alone(self.config))
        self.assertEqual(code, 0, text)
        self.assertGreater(text.count(LIVE), 1)
        self.assertIn("\x1b[42m", text)
        self.assertIn("ETA", text)
        # Whatever follows the last drawing begins with taking it off, and is lines alone.
        end = text[text.rindex("\x1b[A") + 3:]
        self.assertTrue(end.startswith("\r\x1b[J"), repr(end))
        self.assertNotIn("\x1b", end[4:])
        for line in re.sub("\x1b[^a-zA-Z]*[a-zA-Z]", "", text).replace("\r", "").split("\n"):
            if line.startswith("step"):
                self.assertLessEqual(len(line), 100)

    def test_without_colour_nothing_is_coloured(self):
        code, text = self.on_terminal(self.alone(self.config), NO_COLOR="1")
        self.assertEqual(code, 0, text)
        self.assertIn(LIVE, text)
        self.assertNotRegex(text, "\x1b\\[[0-9;]*m")

    def test_elsewhere_there_are_lines_only(self):
        for wanted in ({"TERM": "dumb"}, {"VPP_TERMINAL_WIDTH": "0"}):
            code, text = self.on_terminal(self.alone(self.config, "--set", f'run.dir="{len(wanted)}{list(wanted)[0]}"'),
                                          **wanted)
            self.assertEqual(code, 0, text)
            self.assertNotIn("\x1b", text)
        self.assertNotIn("\x1b", self.vpp("train", self.config, "--set", "pipeline.num_stages=1").stdout)

    def test_mpirun_to_a_pipe_has_lines_only_and_to_a_terminal_a_live_line(self):
        mpirun = [MPIRUN, "-q", "--oversubscribe", "-np", "2", VPP, "train", self.config]
        done = subprocess.run(mpirun, cwd=self.folder, capture_output=True, text=True, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        code, text = self.on_terminal(mpirun + ["--set", 'run.dir="other"'])
        self.assertEqual(code, 0, text)
        self.assertIn(LIVE, text)

    def test_an_error_takes_the_live_line_off(self):
        code, text = self.on_terminal(self.alone(self.config, "--set", "optimizer.lr=1e30"))
        self.assertEqual(code, 79, text)
        end = text[text.rindex("\x1b[A") + 3:]
        self.assertTrue(end.startswith("\r\x1b[J"), repr(end))
        self.assertIn("vpp: error", end)
        self.assertNotIn("\x1b", end[4:])


if __name__ == "__main__":
    main()
