"""check.py when rows of it do not hold: each is told, none hides another, and nothing that it started stays."""

import contextlib
import io
import logging
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import check

HELD = "ok       all of it"


def holds(_build: pathlib.Path, _device: str) -> str:
    return "all of it"


def differs(_build: pathlib.Path, _device: str) -> str:
    raise check.Row("3 different")


def says_nothing(_build: pathlib.Path, _device: str) -> str:
    return check.raw_ratio("")


def is_skipped(_build: pathlib.Path, _device: str) -> str:
    raise check.Row("skipped: there is one rank")


def sleeps(_build: pathlib.Path, _device: str) -> str:
    return check.run(["sleep", "60"])


def is_alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    return False


class Check(unittest.TestCase):
    def setUp(self):
        logging.disable()  # what check.py writes to its log
        self.addCleanup(setattr, check, "limits", check.limits)
        check.limits = check.Limits()

    def shown(self, rows: dict, device: str = "cuda", at_once: int = 1) -> tuple[bool, list[str]]:
        """Whether all hold, and the lines."""
        self.addCleanup(setattr, check, "ROWS", check.ROWS)
        check.ROWS = rows
        with contextlib.redirect_stdout(io.StringIO()) as text:
            all_hold = check.show_all(list(rows), at_once, pathlib.Path("build"), device)
        return all_hold, text.getvalue().splitlines()

    def test_every_row_is_shown_whatever_another_does(self):
        rows = {"first": differs, "second": says_nothing, "third": holds}
        all_hold, lines = self.shown(rows)
        self.assertFalse(all_hold)
        self.assertIn("PROBLEM  3 different", lines[0])
        self.assertIn("PROBLEM  IndexError", lines[1])
        self.assertIn(HELD, lines[2])
        self.assertTrue(self.shown({"third": holds})[0])

    def test_a_row_that_a_card_skips_does_not_hold(self):
        all_hold, lines = self.shown({"links": is_skipped})
        self.assertFalse(all_hold)
        self.assertIn("skipped  there is one rank", lines[0])
        self.assertTrue(self.shown({"links": is_skipped}, device="cpu")[0])

    def test_rows_end_with_their_table(self):
        check.limits.end = time.monotonic() + 0.5
        start = time.monotonic()
        all_hold, lines = self.shown({"first": sleeps, "second": sleeps})
        self.assertLess(time.monotonic() - start, 20)
        self.assertFalse(all_hold)
        self.assertIn("no end in ", lines[0])
        self.assertIn("its time was over before it ran sleep 60", lines[1])

    def test_what_is_left_of_a_session_ends_whatever_its_group(self):
        ranks = "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(60)"
        with subprocess.Popen(["sh", "-c", f"{sys.executable} -c '{ranks}'; true"], stdout=subprocess.PIPE, text=True,
                              start_new_session=True) as shell:
            rank = int(shell.stdout.readline())
            self.assertNotEqual(os.getpgid(rank), shell.pid)
            check.end_session(shell.pid)
        for _ in range(100):
            if not is_alive(rank):
                break
            time.sleep(0.05)
        self.assertFalse(is_alive(rank))

    def test_who_is_ended_ends_its_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            started = pathlib.Path(folder, "started")
            text = f"""import pathlib, signal, sys
sys.path.insert(0, {str(pathlib.Path(check.__file__).parent)!r})
import check
program = "echo $$ > {started}.new; mv {started}.new {started}; sleep 60"
check.ROWS = {{"row": lambda build, device: check.run(["sh", "-c", program])}}
signal.signal(signal.SIGTERM, check.interrupt)
check.show_all(["row"], 1, pathlib.Path("build"), "cuda")
"""
            with subprocess.Popen([sys.executable, "-B", "-c", text], stderr=subprocess.DEVNULL) as table:
                while not started.exists():
                    self.assertIsNone(table.poll())
                    time.sleep(0.05)
                program = int(started.read_text())
                table.send_signal(signal.SIGTERM)
                table.wait(20)
            self.assertFalse(is_alive(program))


if __name__ == "__main__":
    unittest.main()
