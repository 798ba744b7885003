"""What vpp data info and vpp data make say of files, those among them that are no data or lie in the way."""

import gzip
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import PIL.Image  # noqa: E402
import torch  # noqa: E402
from vpp_process import Case, main  # noqa: E402


class DataFiles(Case):
    def test_made_tokens_replace_no_input(self):
        for name in ("a.txt", "a.bin", "b.idx", "m.idx"):
            (self.folder / name).write_text("words")
        (self.folder / "same.idx").symlink_to("a.txt")
        for out, more, replaced, what in (
            ("a.bin", ("a.bin",), "a.bin", "a text that is read"),
            ("./a.bin", ("a.txt", "a.bin"), "./a.bin", "a text that is read"),
            ("b.bin", ("b.idx",), "b.idx", "a text that is read"),
            ("same.bin", ("a.txt",), "same.idx", "a text that is read"),
            ("m.bin", ("a.txt", "--tokenizer", "m.idx"), "m.idx", "the tokenizer"),
        ):
            with self.subTest(out):
                done = self.vpp("data", "make", out, *more, "--overwrite")
                self.assertEqual(done.returncode, 2)
                self.assertIn(f"vpp data make would replace {replaced}, {what}; name another file", done.stderr)
        for name in ("a.txt", "a.bin", "b.idx", "m.idx"):
            self.assertEqual((self.folder / name).read_text(), "words")
        done = self.vpp("data", "make", ".bin", "a.txt")
        self.assertEqual(done.returncode, 2)
        self.assertIn("tokens are written to FILE.bin and FILE.idx (got .bin)", done.stderr)

    def test_info_tells_every_file(self):
        numpy.save(self.folder / "a.npy", numpy.float16([1, -0.5]))
        numpy.save(self.folder / "b.npy", numpy.asfortranarray(numpy.ones((2, 3), dtype=numpy.float32)))
        numpy.save(self.folder / "c.npy", numpy.int64([3]))
        done = self.vpp("data", "info", "a.npy", "b.npy", "none.npy", "c.npy")
        self.assertEqual(done.returncode, 65)
        self.assertEqual(done.stdout, "a.npy: arrays, 132 B\n  a: 2 samples of float16 [], values -0.5 to 1\n"
                                      "c.npy: arrays, 136 B\n  c: 1 sample of int64 [], values 3 to 3\n")
        self.assertRegex(done.stderr, "error: b.npy: Fortran order .*\n.*error: .*none.npy")
        self.assertEqual(self.vpp("data", "info", "none.npy", "b.npy").returncode, 66, "that of the first one")
        done = self.vpp("data", "info", "b.npy", "c.npy", "--json")
        told = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([each["file"] for each in told], ["b.npy", "c.npy"])
        self.assertIn("Fortran order is not read", told[0]["error"])

    def test_files_that_are_no_data_are_named(self):
        torch.save({"w": torch.ones(2)}, self.folder / "w.pt")
        torch.save({"w": torch.ones(2)}, self.folder / "old.pt", _use_new_zipfile_serialization=False)
        (self.folder / "t.gz").write_bytes(gzip.compress(b"a text"))
        PIL.Image.new("RGB", (4, 4)).save(self.folder / "p.png")
        PIL.Image.new("RGB", (4, 4)).save(self.folder / "p.jpg")
        (self.folder / "folder").mkdir()
        for name, what in (("w.pt", "a zip file"), ("old.pt", "a file of torch.save"), ("t.gz", "a gzip file"),
                           ("p.png", "a PNG picture"), ("p.jpg", "a JPEG picture")):
            told = self.vpp("data", "info", name).stdout
            self.assertRegex(told, f"text, [0-9.]+ .*\n  note: it begins as {what}.* does; ")
            self.assertIn(f"it begins as {what}", json.loads(self.vpp("data", "info", name, "--json").stdout)["note"])
            for out in ("out.bin", "folder"):
                done = self.vpp("data", "make", out, name)
                self.assertEqual(done.returncode, 65)
                self.assertIn(f"{name}: it begins as {what}", done.stderr)
        done = self.vpp("data", "info", "folder")
        self.assertEqual(done.returncode, 65)
        self.assertIn("folder: a folder, where a file is read; name the files in it", done.stderr)

    def test_texts_of_another_form_get_a_note(self):
        (self.folder / "l.jsonl").write_text('{"text": "one"}\n')
        note = "note: {}JSON is read as it is, with its names and braces; take the texts out first, as  "
        self.assertIn(note.format("") + "jq -r .text l.jsonl > texts.txt  does\n",
                      self.vpp("data", "info", "l.jsonl").stdout)
        done = self.vpp("data", "make", "out.bin", "l.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(note.format("l.jsonl: "), done.stdout)

    def test_tables_with_other_separators_are_mended_as_it_is_said(self):
        for separator, name in ((";", "semicolons"), ("\t", "tabs")):
            (self.folder / "t.csv").write_text(f"a{separator}b\n1{separator}2,5\n")
            for more in ((), ("--field", "x=b")):
                done = self.vpp("data", "make", "data", "t.csv", *more)
                self.assertEqual(done.returncode, 65)
                self.assertIn(f"t.csv:1:2: columns are separated by commas here, and this line has {name}", done.stderr)
            line = done.stderr.partition("points:  ")[2]
            subprocess.run(["sh", "-c", line], check=True, cwd=self.folder, timeout=60)
            done = self.vpp("data", "make", "data", "commas.csv", "--overwrite")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(numpy.load(self.folder / "data/b.npy").tolist(), [2.5])


if __name__ == "__main__":
    main()
