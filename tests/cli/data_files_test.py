"""What vpp data info and vpp data make say of files, those among them that are no data or lie in the way."""

import gzip
import json
import pathlib
import struct
import subprocess
import sys
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import PIL.Image  # noqa: E402
import torch  # noqa: E402
from vpp_process import ENVIRONMENT, Case, main  # noqa: E402

PLAN = """
[model]
file = "model.pt"
inputs = ["x"]
[data]
kind = "synthetic"
fields = { x = "float32[8]" }
samples = 1024
[train]
steps = 4
global_batch_size = 4
"""


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

    def test_info_tells_every_array(self):
        numpy.savez(self.folder / "mix.npz", x=numpy.float32([1, 2]), names=numpy.array(["a"]), y=numpy.int64([3]))
        done = self.vpp("data", "info", "mix.npz")
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stdout, r"^mix.npz: arrays, .*\n  x: 2 samples of float32 \[\], values 1 to 2\n"
                                      r"  y: 1 sample of int64 \[\], values 3 to 3\n$")
        self.assertIn("error: mix.npz:names: unknown dtype (got '<U1'", done.stderr)
        fields = json.loads(self.vpp("data", "info", "mix.npz", "--json").stdout)["fields"]
        self.assertEqual([field["name"] for field in fields], ["x", "names", "y"])
        self.assertEqual(list(fields[1]), ["name", "error"])
        self.assertIn("unknown dtype", fields[1]["error"])

    def test_archives_of_python_from_2_gib_on(self):
        """Its zipfile then writes 64-bit records beside numbers that fit into 32; here from 100 bytes on."""
        with unittest.mock.patch("zipfile.ZIP64_LIMIT", 100):
            numpy.savez(self.folder / "large.npz", x=numpy.arange(100), y=numpy.float32([1, 2]))
        done = self.vpp("data", "info", "large.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith("  x: 100 samples of int64 [], values 0 to 99\n"
                                             "  y: 2 samples of float32 [], values 1 to 2\n"), done.stdout)

    def test_large_samples_are_looked_at_as_far_as_small_ones(self):
        header = b"{'descr': '|i1', 'fortran_order': False, 'shape': (1, 3000000000), }".ljust(117) + b"\n"
        with (self.folder / "sparse.npy").open("wb") as file:
            file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
            file.truncate(10 + len(header) + 3000000000)
        told = json.loads(self.vpp("data", "info", "sparse.npy", "--json", timeout=30).stdout)
        self.assertEqual(told["fields"][0]["values"], {"low": 0, "high": 0, "all": False, "not_finite": 0})

    def test_files_of_many_tensors(self):
        names = [f"layers.{i}.weight.{'w' * 60}" for i in range(3000)]
        header = json.dumps({name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
                             for i, name in enumerate(names)}).encode()
        (self.folder / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4 * len(names)))
        done = self.vpp("data", "info", "w.safetensors", timeout=30)
        self.assertEqual(len(done.stdout.splitlines()), 3001)

    def test_an_order_ends_with_its_reader(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run(self.command(("data", "order", self.plan(PLAN), "--steps", "1000000000"), 0),
                                  cwd=self.folder, env=ENVIRONMENT, text=True, stdout=full, stderr=subprocess.PIPE,
                                  timeout=60)
        self.assertEqual(done.returncode, 74)
        self.assertIn("standard output did not take all that was printed", done.stderr)

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
        (self.folder / "l.json").write_text('[{"text": "one"}]\n')
        self.assertIn(note.format("") + "jq -r '.[].text' l.json > texts.txt  does\n",
                      self.vpp("data", "info", "l.json").stdout)
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
