"""What the sinks of a training write, read back by the programs that it is for: the csv module, TensorBoard."""

import csv
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

SAMPLE = os.environ["VPP_REPORT_SAMPLE"]
ROOT = pathlib.Path(__file__).resolve().parents[2]


def checks_python() -> str:
    """The interpreter that scripts/setup made for checks like these; it may not be there."""
    script = f"source {ROOT}/scripts/paths.sh && echo $vpp_checks_python"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.strip()


# Prints {tag: [[step, wall_time, float as 8 hexadecimal digits], ...]} of a folder, as TensorBoard shows it.
READ_EVENTS = """
import json, struct, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0}).Reload()
found = {}
for tag in events.Tags()["scalars"]:
    found[tag] = [[e.step, e.wall_time, struct.pack(">f", e.value).hex()] for e in events.Scalars(tag)]
print(json.dumps(found))
"""


def float_bits(value: float) -> str:
    return struct.pack(">f", value).hex()


def loss_at(step: int) -> float:
    session = 1 if step <= 12 else 2
    return math.nan if step == 17 else 3.0 / step + session / 7.0


class Sinks(unittest.TestCase):
    """One run for all tests: 20 steps, then resumed behind step 12 and trained to step 30."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="vpp-sinks-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.run_folder = cls.folder / "run"
        subprocess.run([SAMPLE, "run", str(cls.run_folder)], check=True)

    def test_a_spreadsheet_reads_the_table(self):
        with open(self.run_folder / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        steps = [row for row in rows if row["event"] == "step"]
        self.assertEqual([int(row["step"]) for row in steps], list(range(1, 31)))
        for row in steps:
            loss, expected = float(row["train/loss"]), loss_at(int(row["step"]))
            self.assertEqual(struct.pack("d", loss) if loss == loss else None,
                             struct.pack("d", expected) if expected == expected else None)
            self.assertEqual(row["eval/loss"], "")
        self.assertEqual([row["step"] for row in rows if row["event"] == "eval"], ["10", "20", "30"])
        self.assertTrue(all(None not in row for row in rows), "a row with more cells than the header")

    def test_json_lines_and_table_agree(self):
        lines = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        with open(self.run_folder / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(str(line["step"]), line["event"]) for line in lines],
                         [(row["step"], row["event"]) for row in rows])

    def tensorboard(self, folder: pathlib.Path) -> dict:
        python = checks_python()
        if not os.access(python, os.X_OK):
            self.skipTest("the tensorboard package is not there; scripts/setup installs it")
        read = subprocess.run([python, "-W", "ignore", "-c", READ_EVENTS, str(folder)], capture_output=True, text=True)
        self.assertEqual(read.returncode, 0, read.stderr)
        return json.loads(read.stdout)

    def test_tensorboard_reads_every_value_to_the_bit(self):
        found = self.tensorboard(self.run_folder / "tensorboard")
        for tag in ("train/loss", "train/grad_norm", "train/lr", "perf/tokens_per_s", "perf/flops_per_s", "perf/bubble",
                    "memory/resident_bytes"):
            self.assertEqual([step for step, _, _ in found[tag]], list(range(1, 31)), tag)
        for step, _, bits in found["train/loss"]:
            if step == 17:
                self.assertTrue(math.isnan(struct.unpack(">f", bytes.fromhex(bits))[0]))
            else:
                self.assertEqual(bits, float_bits(loss_at(step)), step)
        for step, _, bits in found["train/lr"]:
            self.assertEqual(bits, float_bits(3e-4 * step / 30), step)
        self.assertEqual([step for step, _, _ in found["eval/loss"]], [10, 20, 30])
        self.assertEqual(found["checkpoint/bytes"][0][2], float_bits(4096))
        self.assertNotIn("train/loss_scale", found, "what is not known is not there")

    def test_without_the_session_mark_later_steps_would_stay(self):
        """The control: the purge comes from the mark and from nothing else."""
        copy = self.folder / "unmarked"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in sorted((self.run_folder / "tensorboard").iterdir()):
            data = file.read_bytes()
            records, place = [], 0
            while place < len(data):
                length = struct.unpack_from("<Q", data, place)[0]
                records.append(data[place:place + length + 16])
                place += length + 16
            self.assertIn(b"brain.Event:2", records[0])
            (copy / file.name).write_bytes(b"".join(records[:1] + records[2:]))
        steps = [step for step, _, _ in self.tensorboard(copy)["train/loss"]]
        self.assertEqual(steps, list(range(1, 21)) + list(range(13, 31)))

    def test_a_damaged_record_is_noticed(self):
        copy = self.folder / "damaged"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        file = sorted((self.run_folder / "tensorboard").iterdir())[0]
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        (copy / file.name).write_bytes(data)
        try:
            steps = [step for step, _, _ in self.tensorboard(copy)["train/loss"]]
        except AssertionError:
            return  # its reader stopped with an error
        self.assertLess(len(steps), 20)


if __name__ == "__main__":
    unittest.main()
