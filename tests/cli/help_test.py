"""The help of every command of the real binary: width, example, and a few screens to the letter."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from vpp_process import ROOT, Case, main  # noqa: E402

COLUMNS = 80
EXPECTED = ROOT / "tests/cli/help"


def faults(help_text: str) -> list[str]:
    """What is wrong with a help screen."""
    lines = help_text.splitlines()
    found = [f"{len(line)} columns: {line}" for line in lines if len(line) > COLUMNS]
    if not re.search(r"^Examples?:\n(  .*\S\n)+\Z", help_text, re.M):
        found.append("it does not end with an example")
    if not lines[0].startswith("vpp"):
        found.append("it does not begin with the command")
    return found


def commands_in(help_text: str) -> list[str]:
    part = re.search(r"^Commands:\n((?:  .*\n)+)", help_text, re.M)
    return re.findall(r"^  (\w\S*)", part[1], re.M) if part else []


class Help(Case):
    def screens(self) -> dict[str, str]:
        """Every command, found by walking down from vpp --help, with its help."""
        found: dict[str, str] = {}
        queue: list[tuple[str, ...]] = [()]
        while queue:
            words = queue.pop()
            done = self.vpp(*words, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            found[" ".join(("vpp", *words))] = done.stdout
            queue += [(*words, word) for word in commands_in(done.stdout)]
        return found

    def test_every_command(self):
        screens = self.screens()
        for command in ("vpp train", "vpp schedule compare", "vpp checkpoint prune", "vpp data order", "vpp man"):
            self.assertIn(command, screens)
        for command, screen in screens.items():
            with self.subTest(command):
                self.assertEqual(faults(screen), [])
                self.assertTrue(screen.startswith(command + ":"), screen)

    def test_the_measure_itself(self):
        good = "vpp x: does\n\nExample:\n  vpp x\n"
        self.assertEqual(faults(good), [])
        self.assertEqual(len(faults(good.replace("does", "d" * 80))), 1)
        self.assertEqual(len(faults(good.replace("Example:", "Usage:"))), 1)
        self.assertEqual(len(faults(good + "more\n")), 1)
        commands = "Commands:\n  train  trains\n  data   looks\n         on\n"
        self.assertEqual(commands_in(commands + "\nOptions:\n  -h  help\n"), ["train", "data"])

    def test_screens_to_the_letter(self):
        """A changed screen: look at it, then write it there with  vpp ... --help > tests/cli/help/NAME.txt"""
        for words in ((), ("train",), ("explain",), ("profile",), ("schedule", "check"), ("compare",), ("sweep",),
                      ("data", "info"), ("data", "make")):
            with self.subTest(words):
                expected = EXPECTED / ("_".join(("vpp", *words)) + ".txt")
                self.assertEqual(self.vpp(*words, "--help").stdout, expected.read_text())

    def test_short_and_long_are_the_same(self):
        self.assertEqual(self.vpp("train", "-h").stdout, self.vpp("train", "--help").stdout)


if __name__ == "__main__":
    main()
