"""Hostile and broken model files: exit code and message of each, beside a harmless twin and what trust changes."""

import hashlib
import pathlib
import stat
import sys
import warnings
import zipfile
from typing import Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import torch  # noqa: E402
from tiny_model import PLAN, Net  # noqa: E402
from vpp_process import Case, main  # noqa: E402


class Stateful(Net):
    """Its state is set by code while the file is loaded, as quantized modules do."""

    @torch.jit.export
    def __getstate__(self):
        return (self.fc.weight, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[torch.Tensor, bool]):
        self.training = state[1]


def records(path: pathlib.Path) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def write(path: pathlib.Path, entries: list[tuple[zipfile.ZipInfo | str, bytes]]) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # names that stand twice are wanted
        for name, data in entries:
            archive.writestr(name, data)


class ModelSafety(Case):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "model.pt"
        torch.manual_seed(1)
        torch.jit.script(Net()).save(str(self.path))
        self.good = records(self.path)
        self.top = self.good[0][0].split("/")[0]

    def with_line(self, line: str) -> None:
        """The model with one more line in forward."""
        self.with_code("    fc = self.fc\n", f"    fc = self.fc\n    {line}\n")

    def with_code(self, old: str, new: str) -> None:
        entries = [(name, data.replace(old.encode(), new.encode()) if name.endswith(".py") else data)
                   for name, data in self.good]
        self.assertNotEqual(entries, self.good)
        write(self.path, entries)

    def inspect(self, trusted: bool = False, code: int = 0) -> str:
        trust = ["--set", f"model.trust_sha256=['{self.digest()}']"] if trusted else []
        done = self.vpp("inspect", self.plan(PLAN), *trust)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        if code:
            self.assertEqual(done.stderr.count("vpp: error:"), 1, done.stderr)
        return done.stderr

    def digest(self) -> str:
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def test_what_has_effects_is_refused_by_name_and_runs_when_trusted(self):
        victim = self.folder / "written"
        secret = self.folder / "secret"
        secret.write_bytes(bytes(16))
        cases = [
            (f'_0 = torch.save([1], "{victim}")', '_0 = torch.neg(x)', "calls save, which writes files"),
            (f'_0 = torch.from_file("{secret}", False, 4)', '_0 = torch.zeros([4])',
             "calls from_file, which reads and writes files"),
            (f'_0 = getattr(torch, "from_file")("{secret}", False, 4)', '_0 = getattr(torch, "zeros")([4])',
             "calls from_file"),
            ('print("one\\033[2Jtwo")', '_0 = "print: \\033[2J"', "calls print, which prints"),
        ]
        for hostile, harmless, message in cases:
            with self.subTest(hostile):
                self.with_line(hostile)
                text = self.inspect(code=77)
                for part in (message, ".py:", f'model.trust_sha256 = ["{self.digest()}"]'):
                    self.assertIn(part, text)
                self.assertFalse(victim.exists())
                said = self.inspect(trusted=True)
                if hostile.startswith("print"):
                    self.assertIn("one?[2Jtwo", said)
                self.assertEqual(victim.exists(), "torch.save" in hostile, "the attack is real")
                victim.unlink(missing_ok=True)
                self.with_line(harmless)
                self.inspect()

    def test_a_file_cannot_be_written_while_loading_even_when_trusted(self):
        victim = self.folder / "written"
        argument = "    x: Tensor) -> Tensor:\n    fc = self.fc\n"
        twin = argument.replace(") ->", ", y: Tensor=torch.zeros([4])) ->")
        self.with_code(argument, twin)
        self.inspect()
        self.with_code(argument, twin.replace("torch.zeros([4])", f'torch.from_file("{victim}", True, 4)'))
        self.assertIn("from_file", self.inspect(code=77))
        self.assertFalse(victim.exists())
        self.inspect(trusted=True, code=65)
        self.assertTrue(not victim.exists() or victim.stat().st_size == 0)

    def test_other_libraries_are_refused_by_name(self):
        for line, message in (('_0 = ops.quantized.relu6(x, False)', "calls quantized::relu6, an operator of a "),
                              ('_0 = ops.profiler._record_function_enter("a")', "calls profiler::"),
                              ('o = ops', "hides names")):
            with self.subTest(line):
                self.with_line(line)
                self.assertIn(message, self.inspect(code=77))
        self.with_line("_0 = ops.aten.neg(x)")
        self.inspect()

    def test_code_that_runs_while_loading(self):
        torch.jit.script(Stateful()).save(str(self.path))
        self.assertIn("has the method __setstate__, which runs while the file is loaded", self.inspect(code=77))

    def test_what_crashes_libtorch_costs_a_child(self):
        depth = 200_000
        self.with_line("_0 = " + "(" * depth + "1" + ")" * depth)
        text = self.inspect(code=65)
        self.assertIn("model.pt: LibTorch crashes when it loads this model (signal 11, Segmentation fault)", text)
        self.with_line("_0 = " + "(" * 20 + "1" + ")" * 20)
        self.inspect()

    def test_zip_tricks(self):
        link = zipfile.ZipInfo(f"{self.top}/extra/link")
        link.create_system = 3
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        bomb = zipfile.ZipInfo(f"{self.top}/code/bomb.py")
        bomb.compress_type = zipfile.ZIP_DEFLATED
        weights = [(name, data) for name, data in self.good if "/data/" in name]
        packed = zipfile.ZipInfo(weights[0][0])
        packed.compress_type = zipfile.ZIP_DEFLATED
        without_first = [entry for entry in self.good if entry[0] != weights[0][0]]
        cases = [
            (self.good + [(f"{self.top}/../../evil.py", b"x")], 77, "unsafe record name"),
            (self.good + [("/etc/evil", b"x")], 77, "unsafe record name"),
            (self.good + [(f"{self.top}/a\x1b[2J", b"x")], 77, "unsafe record name"),
            (self.good + [(link, b"/etc/passwd")], 77, "is a symbolic link"),
            (self.good + [weights[0]], 65, "is there twice"),
            (self.good + [("other/code/x.py", b"x")], 65, "one top folder"),
            (self.good + [(bomb, b"#" * (300 << 20))], 65, "larger together than the file can hold"),
            (self.good + [(f"{self.top}/model.json", b"{}")], 65, "format of before 2020"),
            (without_first + [(packed, weights[0][1])], 65, "is compressed"),
            (self.good, 0, ""),
            (self.good + [(f"{self.top}/extra/note.txt", b"hello")], 0, ""),
        ]
        for entries, code, message in cases:
            with self.subTest(message or "the twins"):
                write(self.path, entries)
                self.assertIn(message, self.inspect(code=code))

    def test_a_truncated_file(self):
        whole = self.path.read_bytes()
        for length in (0, 100, len(whole) // 2, len(whole) - 1):
            with self.subTest(length):
                self.path.write_bytes(whole[:length])
                self.assertIn("model.pt: ", self.inspect(code=65))
        self.path.write_bytes(whole)
        self.inspect()

    def test_two_ranks_end_with_one_line_and_the_code(self):
        self.with_line('_0 = torch.from_file("/etc/hostname")')
        depth = 200_000
        refused = self.vpp("train", self.plan(PLAN), "--set", "pipeline.num_stages=2", ranks=2)
        self.with_line("_0 = " + "(" * depth + "1" + ")" * depth)
        crashes = self.vpp("train", self.plan(PLAN), "--set", "pipeline.num_stages=2", ranks=2)
        for done, code, message in ((refused, 77, "calls from_file"), (crashes, 65, "LibTorch crashes")):
            with self.subTest(message):
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    main()
