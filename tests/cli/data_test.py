"""Data formats as other programs read them: what vpp feeds to a model, against torchvision and numpy, bit for bit."""

import json
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "reference"))
import numpy  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from train import combine_key, name_key, transform_key  # noqa: E402
from vpp_process import ROOT, Case, main  # noqa: E402

PLAN = """
[model]
file = "model.pt"
inputs = ["{field}"]
[loss]
kind = "mse"
target = "{field}"
[data]
kind = "{kind}"
{more}
[pipeline]
num_stages = 1
num_microbatches = 1
[train]
steps = 1
global_batch_size = 4
"""


TOKENS = """
[model]
file = "model.pt"
[data]
{more}
[pipeline]
num_microbatches = 2
[train]
steps = 4
global_batch_size = 4
[optimizer]
kind = "sgd"
lr = 1e-6
"""


class Same(torch.nn.Module):
    """Gives what it gets."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.one


class NextToken(torch.nn.Module):
    """Gives a loss of tokens."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (tokens * self.one - targets).square().mean()


def idx(kind: int, values: numpy.ndarray) -> bytes:
    return struct.pack(f">BBBB{values.ndim}I", 0, 0, kind, values.ndim, *values.shape) + values.tobytes()


class Data(Case):
    def setUp(self):
        super().setUp()
        torch.jit.script(Same()).save(str(self.folder / "model.pt"))
        self.random = numpy.random.default_rng(7)

    def fed(self, kind: str, field: str, more: str) -> numpy.ndarray:
        """What the model gets of the validation data, sample by sample."""
        (self.folder / "plan.toml").write_text(PLAN.format(kind=kind, field=field, more=more))
        done = self.vpp("eval", "plan.toml", "--initial-weights", "--outputs", "out", "--overwrite",
                        "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["loss"], 0, "the model gives what it gets")
        return numpy.load(self.folder / "out/output0.npy")

    def expect_equal(self, fed: numpy.ndarray, expected: numpy.ndarray) -> None:
        self.assertEqual((fed.shape, fed.dtype), (expected.shape, expected.dtype))
        self.assertEqual(fed.tobytes(), expected.tobytes())

    def test_pictures_of_mnist(self):
        raw = self.folder / "MNIST/raw"
        raw.mkdir(parents=True)
        for name in ("train", "t10k"):
            (raw / f"{name}-images-idx3-ubyte").write_bytes(
                idx(8, self.random.integers(0, 256, (50, 28, 28), dtype=numpy.uint8)))
            (raw / f"{name}-labels-idx1-ubyte").write_bytes(
                idx(8, self.random.integers(0, 10, 50, dtype=numpy.uint8)))
        theirs = torchvision.datasets.MNIST(str(self.folder), train=False,
                                            transform=torchvision.transforms.ToTensor())
        more = "".join(f'[data.{part}]\nimage = "MNIST/raw/{name}-images-idx3-ubyte"\n'
                       f'label = "MNIST/raw/{name}-labels-idx1-ubyte"\n'
                       for part, name in (("train", "train"), ("val", "t10k")))
        fed = self.fed("idx", "image", more)
        self.expect_equal(fed, torch.stack([image for image, _ in theirs]).numpy())
        self.assertEqual(len(numpy.unique(fed)), 256)

    def test_other_types_of_idx(self):
        values = self.random.standard_normal((9, 3, 2)).astype(">f4")
        (self.folder / "x.idx").write_bytes(idx(13, values))
        more = '[data.train]\nx = "x.idx"\n[data.val]\nx = "x.idx"\n'
        self.expect_equal(self.fed("idx", "x", more), values.astype("<f4"))

    def test_arrays_of_files_that_hold_several(self):
        for dtype in ("<f4", "<f8", "<f2", "|u1", "|b1"):
            values = (self.random.standard_normal((9, 3, 2)) * 3).astype(dtype)
            numpy.savez(self.folder / "one.npz", other=values[:2], x=values)
            numpy.savez(self.folder / "two.npz", y_train=values[::-1])
            expected = torch.from_numpy(values) * torch.ones(1)
            tables = '[data.train]\nx = "{0}"\n[data.val]\nx = "{0}"\n'
            self.expect_equal(self.fed("arrays", "x", tables.format("one.npz")), expected.numpy())
            self.expect_equal(self.fed("arrays", "x", tables.format("two.npz:y_train")), expected.flip(0).numpy())
        names = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16"}
        for dtype, name in names.items():
            values = torch.from_numpy(self.random.standard_normal((9, 5))).to(getattr(torch, dtype))
            data = values.view(torch.uint8).numpy().tobytes()
            header = json.dumps({"x": {"dtype": name, "shape": [9, 5], "data_offsets": [0, len(data)]}}).encode()
            (self.folder / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
            fed = self.fed("arrays", "x", tables.format("x.safetensors"))
            self.expect_equal(fed, (values * torch.ones(1)).numpy())
        numpy.savez_compressed(self.folder / "one.npz", x=numpy.ones((4, 2)))
        (self.folder / "plan.toml").write_text(PLAN.format(kind="arrays", field="x", more=tables.format("one.npz")))
        done = self.vpp("inspect", "plan.toml")
        self.assertEqual(done.returncode, 65)
        self.assertIn("one.npz:x: compressed, so that no sample can be read alone; try np.savez", done.stderr)

    def test_pictures_of_cifar10(self):
        records = self.random.integers(0, 256, (20, 3073), dtype=numpy.uint8)
        records[:, 0] %= 10
        (self.folder / "one.bin").write_bytes(records[:12].tobytes())
        (self.folder / "two.bin").write_bytes(records[12:].tobytes())
        # torchvision reads the pickled version; its pictures are HWC, as numpy arrays.
        pictures = records[:, 1:].reshape(20, 3, 32, 32).transpose(0, 2, 3, 1)
        expected = torch.stack([torchvision.transforms.ToTensor()(picture.copy()) for picture in pictures])
        more = 'train = ["one.bin"]\nval = ["one.bin", "two.bin"]'
        self.expect_equal(self.fed("cifar10", "image", more), expected.numpy())

    def test_tokens_with_an_index_of_megatron(self):
        tokens = self.random.integers(0, 128000, 33, dtype=numpy.int32)
        lengths = numpy.array([20, 13], dtype=numpy.int32)
        begins = numpy.array([0, 80], dtype=numpy.int64)
        index = (b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 2, 3) + lengths.tobytes() + begins.tobytes()
                 + numpy.array([0, 1, 2], dtype=numpy.int64).tobytes())
        (self.folder / "data.bin").write_bytes(tokens.tobytes())
        (self.folder / "data.idx").write_bytes(index)
        more = 'train = ["data.bin"]\nval = ["data.bin"]\nsequence_length = 8'
        fed = self.fed("tokens", "tokens", more)
        self.expect_equal(fed, tokens[:32].reshape(4, 8).astype(numpy.float32))
        (self.folder / "data.idx").write_bytes(index[:-1])
        done = self.vpp("inspect", "plan.toml")
        self.assertEqual(done.returncode, 65)
        self.assertIn("data.idx: the index does not fit its file", done.stderr)
        torch.jit.script(NextToken()).save(str(self.folder / "model.pt"))
        self.plan(TOKENS.format(more='kind = "tokens"\ntrain = ["data.bin"]\nsequence_length = 8'))
        (self.folder / "data.idx").write_bytes(index)
        self.assertEqual(self.vpp("train", "plan.toml").returncode, 0)
        (self.folder / "data.idx").unlink()
        done = self.vpp("train", "plan.toml", "--set", "train.steps=6")
        self.assertEqual(done.returncode, 77, "the same bytes are other tokens now")
        self.assertIn("the type of the tokens was uint32, now uint16; set it back", done.stderr)

    def transformed(self, values: numpy.ndarray, table: str) -> numpy.ndarray:
        """What the model gets of an array behind a [[data.transform]] table."""
        numpy.save(self.folder / "x.npy", values)
        tables = f'[data.train]\nx = "x.npy"\n[data.val]\nx = "x.npy"\n[[data.transform]]\nfield = "x"\n{table}'
        return self.fed("arrays", "x", tables)

    def test_outputs_replace_no_data(self):
        (self.folder / "out").mkdir()
        data = self.folder / "out/output0.npy"
        numpy.save(data, numpy.ones((4, 3), dtype=numpy.float32))
        before = data.read_bytes()
        more = '[data.train]\nx = "out/output0.npy"\n[data.val]\nx = "out/output0.npy"'
        (self.folder / "plan.toml").write_text(PLAN.format(kind="arrays", field="x", more=more))
        done = self.vpp("eval", "plan.toml", "--initial-weights", "--outputs", "out", "--overwrite")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--outputs would replace out/output0.npy, a data file of the plan; name another folder",
                      done.stderr)
        self.assertEqual(data.read_bytes(), before)

    def test_numbers_as_totensor_and_normalize_have_them(self):
        pictures = self.random.integers(0, 256, (40, 8, 7, 3), dtype=numpy.uint8)
        mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
        scale = f"scale = {1 / 255!r}\n"
        theirs = torch.stack([torchvision.transforms.ToTensor()(picture) for picture in pictures])
        planes = numpy.ascontiguousarray(pictures.transpose(0, 3, 1, 2))
        self.expect_equal(self.transformed(planes, scale), theirs.numpy())
        normalized = torchvision.transforms.Normalize(mean, std)(theirs)
        fed = self.transformed(planes, f"{scale}mean = {mean}\nstd = {std}\n")
        self.expect_equal(fed, normalized.numpy())
        other = self.transformed(planes, f"{scale}mean = {mean}\nstd = {std[::-1]}\n")
        self.assertNotEqual(other.tobytes(), fed.tobytes())

    def test_resize_as_interpolate_has_it(self):
        # Of bytes no result lies so near the middle of two floats that the last bit of a double could matter.
        planes = self.random.integers(0, 256, (6, 2, 9, 7), dtype=numpy.uint8)
        for size in ([9, 7], [18, 20], [4, 3], [1, 1], [5, 30]):
            expected = torch.nn.functional.interpolate(torch.from_numpy(planes).double(), size, mode="bilinear",
                                                       align_corners=False).float()
            self.expect_equal(self.transformed(planes, f"resize = {size}\n"), expected.numpy())
        aligned = torch.nn.functional.interpolate(torch.from_numpy(planes).double(), [5, 30], mode="bilinear",
                                                  align_corners=True).float()
        self.assertNotEqual(aligned.numpy().tobytes(), expected.numpy().tobytes())

    def test_crops_of_an_evaluation_are_the_middle(self):
        planes = self.random.standard_normal((5, 3, 9, 8)).astype(numpy.float32)
        for size in ([9, 8], [4, 4], [5, 3], [6, 7], [1, 1], [10, 9], [12, 11], [13, 12], [4, 11], [10, 3]):
            expected = torchvision.transforms.CenterCrop(size)(torch.from_numpy(planes))
            self.expect_equal(self.transformed(planes, f"crop = {size}\npad = 2\nflip = 1.0\n"), expected.numpy())

    def test_crops_and_flips_of_a_training_are_functions_of_seed_epoch_and_sample(self):
        planes = self.random.standard_normal((6, 2, 5, 4)).astype(numpy.float32)
        numpy.save(self.folder / "x.npy", planes)
        numpy.save(self.folder / "zero.npy", numpy.zeros((6, 2, 4, 4), dtype=numpy.float32))
        plan = PLAN.format(kind="arrays", field="x", more="[data.train]\nx = \"x.npy\"\nzero = \"zero.npy\"\n"
                           "[[data.transform]]\nfield = \"x\"\ncrop = [4, 4]\npad = 2\nflip = 0.5\n")
        plan = plan.replace('target = "x"', 'target = "zero"') + '[optimizer]\nkind = "sgd"\nlr = 1e-30\n'
        (self.folder / "plan.toml").write_text(plan)

        def train(run: str, ranks: int, *settings: str) -> list[tuple]:
            shuffle = ("data.shuffle=false", f"run.dir={run}", "train.steps=6", *settings)
            sets = [argument for setting in shuffle for argument in ("--set", setting)]
            done = self.vpp("train", "plan.toml", *sets, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            return self.bits(run)

        def fraction(key: int, number: int) -> float:
            return (combine_key(key, number) >> 11) * 2.0**-53

        def drawn(epoch: int, sample: int) -> torch.Tensor:
            key = transform_key(1234, epoch, sample)
            padded = torch.nn.functional.pad(torch.from_numpy(planes[sample]), (2, 2, 2, 2))
            top, left = int(fraction(key, 0) * 6), int(fraction(key, 1) * 5)
            taken = padded[:, top:top + 4, left:left + 4]
            return taken.flip(-1) if fraction(key, 2) < 0.5 else taken

        losses = []
        for step in range(6):
            numbers = range(4 * step, 4 * step + 4)
            taken = [drawn(k // 6, k % 6) for k in numbers]
            halves = [torch.stack(taken[:2]), torch.stack(taken[2:])]
            losses.append(str([torch.nn.functional.mse_loss(half, torch.zeros_like(half)).item() for half in halves]))
        one = train("one", 1, "pipeline.num_microbatches=2")
        self.assertEqual([line[2] for line in one], losses)
        self.assertEqual(train("two", 2, "mesh.dp=2"), one)
        train("three", 1, "pipeline.num_microbatches=2", "train.steps=2")
        self.assertEqual(train("three", 1, "pipeline.num_microbatches=2"), one)
        sets = [text for each in ("pipeline.num_microbatches=2", "data.shuffle=false", "run.dir=three", "train.steps=8")
                for text in ("--set", each)]
        changed = plan.replace("pad = 2", "pad = 1")
        (self.folder / "other.toml").write_text(changed)
        refused = self.vpp("train", "other.toml", *sets)
        self.assertEqual(refused.returncode, 77)
        table = '[{"field":"x","crop":[4,4],"pad":%d,"flip":0.5}]'
        self.assertIn(f"data.transform was {table % 2}, now {table % 1}; set it back, or start anew", refused.stderr)
        (self.folder / "other.toml").write_text(changed + '[data.val]\nx = "x.npy"\nzero = "zero.npy"\n')
        said = self.vpp("eval", "other.toml", *sets)
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn(f"the checkpoint was made with another data.transform ({table % 2}, now {table % 1})",
                      said.stderr)
        self.assertEqual(self.vpp("train", "plan.toml", *sets).returncode, 0)
        other = train("four", 1, "pipeline.num_microbatches=2", "train.seed=5")
        self.assertNotEqual([line[2] for line in other], losses)

    def test_files_with_weights_take_turns(self):
        for name, windows in (("a", 10), ("b", 4)):
            (self.folder / name).write_bytes(self.random.integers(0, 256, 8 * windows + 1, dtype=numpy.uint8).tobytes())
        more = 'train = ["a", "b"]\nsequence_length = 8\nweights = [3, 1]'
        (self.folder / "plan.toml").write_text(PLAN.format(kind="text", field="tokens", more=more))
        done = self.vpp("data", "order", "plan.toml", "--steps", "40")
        self.assertEqual(done.returncode, 0, done.stderr)
        steps = [[int(sample) for sample in line.split()] for line in done.stdout.splitlines()]
        for step in steps:
            self.assertEqual(sum(sample < 10 for sample in step), 3, "of four samples")
        drawn = [sample for step in steps for sample in step]
        for first, count in ((0, 10), (10, 4)):
            own = [sample for sample in drawn if first <= sample < first + count]
            epochs = [own[i:i + count] for i in range(0, len(own), count)]
            for epoch in epochs:
                self.assertEqual(sorted(epoch), list(range(first, first + count)))
            self.assertGreater(len({tuple(epoch) for epoch in epochs}), 5, "each epoch has its own order")
        torch.jit.script(NextToken()).save(str(self.folder / "model.pt"))
        self.plan(TOKENS.format(more=f'kind = "text"\n{more}'))
        sets = ("--set", "checkpoint.every=2")
        for run, steps in (("whole", 6), ("parts", 2), ("parts", 6)):
            done = self.vpp("train", "plan.toml", *sets, "--set", f"run.dir={run}", "--set", f"train.steps={steps}")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.bits("parts"), self.bits("whole"))
        done = self.vpp("train", "plan.toml", *sets, "--set", "run.dir=parts", "--set", "train.steps=8", "--set",
                        "data.weights=[1, 1]")
        self.assertEqual(done.returncode, 77)
        self.assertIn("data.weights was [3.0,1.0], now [1.0,1.0]", done.stderr)
        shown = self.vpp("inspect", "plan.toml", *sets)
        self.assertIn("text, 14 samples, files take turns 3.0 : 1.0\n", shown.stdout)
        done = self.vpp("inspect", "plan.toml", "--set", "data.weights=[1]")
        self.assertEqual(done.returncode, 78)
        self.assertIn("data.weights needs a number for each file of data.train (got 1 for 2)", done.stderr)

    def test_a_part_of_the_training_data_is_held_out(self):
        torch.jit.script(NextToken()).save(str(self.folder / "model.pt"))
        values = self.random.permutation(41).astype(numpy.uint8)
        (self.folder / "a").write_bytes(values[:25].tobytes())
        (self.folder / "b").write_bytes(values[24:].tobytes())
        self.plan(TOKENS.format(more='kind = "text"\ntrain = ["a", "b"]\nsequence_length = 1\nval_split = 0.2'))
        # The keyed draw as lib/base/RANDOM.md has it: of each five samples one.
        held_out = [5 * run + combine_key(name_key(1234, "data.val_split"), run) % 5 for run in range(8)]
        kept = [sample for sample in range(40) if sample not in held_out]
        (self.folder / "val").write_bytes(b"")
        losses = [float(values[sample]) - float(values[sample + 1]) for sample in held_out]
        expected = sum(loss * loss for loss in losses) / 8
        for ranks, sets in ((0, []), (2, ["mesh.dp=2", "pipeline.num_microbatches=1"])):
            arguments = [argument for each in sets for argument in ("--set", each)]
            done = self.vpp("eval", "plan.toml", "--initial-weights", "--json", *arguments, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((json.loads(done.stdout)["loss"], json.loads(done.stdout)["samples"]), (expected, 8))
        done = self.vpp("data", "order", "plan.toml", "--steps", "8")
        self.assertEqual(sorted(map(int, done.stdout.split())), kept, "by their numbers in the files")
        # One epoch is the rest, and nothing else: losses of microbatches of one sample are those of its tokens.
        done = self.vpp("train", "plan.toml", "--set", "train.steps=8", "--set", "pipeline.num_microbatches=4", "--set",
                        "optimizer.lr=0", "--set", "train.eval_every=4")
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = [loss for line in self.metrics("runs/plan") if line["event"] == "step"
                for loss in line["microbatch_losses"]]
        theirs = [(float(values[sample]) - float(values[sample + 1])) ** 2 for sample in kept]
        self.assertEqual(sorted(seen), sorted(theirs))
        self.assertNotEqual(sorted(seen)[:8], sorted(loss * loss for loss in losses))
        evaluations = [line["loss"] for line in self.metrics("runs/plan") if line["event"] == "eval"]
        self.assertEqual(evaluations, [expected] * 3)
        refused = self.vpp("train", "plan.toml", "--set", "train.steps=9", "--set", "data.val_split=0.3")
        self.assertEqual(refused.returncode, 77)
        self.assertIn("data.val_split was 0.2, now 0.3", refused.stderr)

    def test_documents_stay_apart_where_that_is_asked(self):
        torch.jit.script(Same()).save(str(self.folder / "model.pt"))
        tokens = numpy.arange(1, 12, dtype=numpy.uint16)
        lengths = numpy.array([6, 1, 4], dtype=numpy.int32)
        begins = numpy.array([0, 12, 14], dtype=numpy.int64)
        (self.folder / "data.idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 3, 4) + lengths.tobytes() + begins.tobytes()
            + numpy.arange(4, dtype=numpy.int64).tobytes())
        (self.folder / "data.bin").write_bytes(tokens.tobytes())
        files = 'train = ["data.bin"]\nval = ["data.bin"]\nsequence_length = 3\n'
        joined, apart = files, files + 'documents = "apart"'
        for field, shift in (("tokens", 0), ("targets", 1)):
            fed = self.fed("tokens", field, joined)
            self.expect_equal(fed, tokens[shift:shift + 9].reshape(3, 3).astype(numpy.float32))
        self.expect_equal(self.fed("tokens", "tokens", apart),
                          numpy.array([[1, 2, 3], [4, 5, 0], [8, 9, 10]], dtype=numpy.float32))
        self.expect_equal(self.fed("tokens", "targets", apart),
                          numpy.array([[2, 3, 4], [5, 6, -100], [9, 10, 11]], dtype=numpy.float32))
        (self.folder / "data.idx").unlink()
        done = self.vpp("inspect", "plan.toml")
        self.assertEqual(done.returncode, 65)
        self.assertIn("no index of its documents lies beside it", done.stderr)

    def test_info_says_what_files_hold(self):
        values = self.random.standard_normal((7, 3, 2)).astype(numpy.float32)
        numpy.save(self.folder / "x.npy", values)
        numpy.savez(self.folder / "two.npz", a=values.astype(numpy.float64), b=numpy.arange(4))
        header = b'{"t":{"dtype":"I32","shape":[3,2],"data_offsets":[0,24]}}'
        (self.folder / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header
                                                    + numpy.arange(6, dtype=numpy.int32).tobytes())
        (self.folder / "labels").write_bytes(idx(8, numpy.array([3, 9], dtype=numpy.uint8)))
        numpy.array([7, 50256, 9], dtype=numpy.uint16).tofile(self.folder / "gpt2.bin")
        header = numpy.zeros(256, dtype=numpy.int32)
        header[:3] = 20240520, 1, 2
        (self.folder / "llmc.bin").write_bytes(header.tobytes() + numpy.array([5, 6], dtype=numpy.uint16).tobytes())
        names = ["x.npy", "two.npz", "w.safetensors", "labels", "gpt2.bin", "llmc.bin"]
        done = self.vpp("data", "info", *names, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = dict(zip(names, map(json.loads, done.stdout.splitlines())))
        self.assertEqual([told[name]["kind"] for name in names], ["arrays"] * 3 + ["idx"] + ["tokens"] * 2)
        for name, field, array in (("x.npy", 0, values), ("two.npz", 0, values.astype(numpy.float64)),
                                   ("two.npz", 1, numpy.arange(4)),
                                   ("w.safetensors", 0, numpy.arange(6, dtype=numpy.int32).reshape(3, 2))):
            found = told[name]["fields"][field]
            self.assertEqual((found["dtype"], found["shape"], found["samples"]),
                             (str(array.dtype), list(array.shape[1:]), len(array)))
            self.assertEqual(found["values"],
                             {"low": array.min(), "high": array.max(), "all": True, "not_finite": 0})
        self.assertEqual((told["gpt2.bin"]["tokens"], told["gpt2.bin"]["values"]["high"]), (3, 50256))
        self.assertEqual((told["llmc.bin"]["tokens"], told["llmc.bin"]["values"]["low"]), (2, 5))
        text = self.vpp("data", "info", "labels", "gpt2.bin").stdout
        self.assertEqual(text, "labels: idx, 10 B\n  labels: 2 samples of int64 [], values 3 to 9\n"
                               "gpt2.bin: tokens, 6 B\n  3 tokens of 2 bytes, values 7 to 50256\n")
        numpy.savez(self.folder / "adam.npz", step=numpy.float32(3), w=numpy.float32([1, 2]))
        text = self.vpp("data", "info", "adam.npz").stdout
        self.assertIn("  step: no samples, float32 []\n  w: 2 samples of float32 [], values 1 to 2\n", text)
        nan, inf = numpy.nan, numpy.inf
        for values, text, expected in (
            ([0, nan, 1], "values 0 to 1, 1 of 3 values is not finite",
             {"low": 0, "high": 1, "all": True, "not_finite": 1}),
            ([inf, 2, nan], "values 2 to 2, 2 of 3 values are not finite",
             {"low": 2, "high": 2, "all": True, "not_finite": 2}),
            ([nan], "1 of 1 value is not finite", {"all": True, "not_finite": 1}),
        ):
            numpy.save(self.folder / "n.npy", numpy.float32(values))
            told = self.vpp("data", "info", "n.npy").stdout
            self.assertTrue(told.endswith(f" of float32 [], {text}\n"), told)
            told = json.loads(self.vpp("data", "info", "n.npy", "--json").stdout)
            self.assertEqual(told["fields"][0]["values"], expected)
        (self.folder / "x.npy").write_bytes((self.folder / "x.npy").read_bytes()[:-1])
        self.assertEqual(self.vpp("data", "info", "x.npy").returncode, 65)
        self.assertEqual(self.vpp("data", "info", "none").returncode, 66)
        self.assertEqual(self.vpp("data", "info", "labels", "--kind", "idxx").returncode, 2)

    def test_made_tokens_are_the_bytes_of_texts(self):
        texts = ["first\nline two\n", "\u00fcber"]
        for i, text in enumerate(texts):
            (self.folder / f"{i}.txt").write_text(text)
        done = self.vpp("data", "make", "out.bin", "0.txt", "1.txt", "--end-token", "256")
        self.assertEqual(done.returncode, 0, done.stderr)
        documents = [[*text.encode(), 256] for text in texts]
        self.assertEqual(numpy.fromfile(self.folder / "out.bin", dtype=numpy.uint16).tolist(), sum(documents, []))
        index = (self.folder / "out.idx").read_bytes()
        self.assertEqual(struct.unpack("<9sQBQQ", index[:34]), (b"MMIDIDX\0\0", 1, 8, 2, 3))
        lengths = [len(document) for document in documents]
        self.assertEqual(numpy.frombuffer(index, "<i4", 2, 34).tolist(), lengths)
        self.assertEqual(numpy.frombuffer(index, "<i8", 5, 42).tolist(), [0, 2 * lengths[0], 0, 1, 2])
        self.assertEqual(len(index), 82)
        told = self.vpp("data", "info", "out.idx").stdout
        self.assertEqual(told, self.vpp("data", "info", "out.bin").stdout, "an index stands for its tokens")
        self.assertTrue(told.startswith(f"out.bin: tokens, {2 * sum(lengths)} B\n"), told)
        self.assertIn(f"2 documents of {lengths[1]} to {lengths[0]} tokens", told)
        files = 'train = ["out.bin"]\nval = ["out.bin"]\nsequence_length = 4\ndocuments = "apart"'
        fed = self.fed("tokens", "tokens", files)
        self.expect_equal(fed[0], numpy.array(documents[0][:4], dtype=numpy.float32))
        again = self.vpp("data", "make", "out.bin", "0.txt")
        self.assertEqual(again.returncode, 73)
        self.assertIn("out.bin is there already", again.stderr)
        self.assertEqual(self.vpp("data", "make", "out.bin", "0.txt", "--lines", "--overwrite").returncode, 0)
        self.assertEqual((self.folder / "out.bin").read_bytes(), b"firstline two")

    def trained(self, name: str, *options: str) -> str:
        """A SentencePiece model of this repository's own words."""
        text = self.folder / "words.txt"
        text.write_text((ROOT / "lib/README.md").read_text() + "\u00fcber \ufb01n \u4e2d\u6587\n")
        line = ["spm_train", f"--input={text}", f"--model_prefix={self.folder / name}", "--minloglevel=2", *options]
        subprocess.run(line, check=True, capture_output=True, timeout=60)
        return f"{name}.model"

    def theirs(self, model: str, lines: str) -> list[list[int]]:
        """The tokens that SentencePiece's own program makes of each line."""
        line = ["spm_encode", f"--model={self.folder / model}", "--output_format=id"]
        done = subprocess.run(line, input=lines.encode(), check=True, capture_output=True, timeout=60)
        return [[int(token) for token in each.split()] for each in done.stdout.decode().split("\n")[:-1]]

    def expect_tokens(self, documents: list[list[int]], dtype: type) -> None:
        """What lies in out.bin and out.idx."""
        code = {numpy.uint8: 1, numpy.uint16: 8, numpy.int32: 4}[dtype]
        self.assertEqual(numpy.fromfile(self.folder / "out.bin", dtype=dtype).tolist(), sum(documents, []))
        index = (self.folder / "out.idx").read_bytes()
        count = len(documents)
        self.assertEqual(struct.unpack("<9sQBQQ", index[:34]), (b"MMIDIDX\0\0", 1, code, count, count + 1))
        self.assertEqual(numpy.frombuffer(index, "<i4", count, 34).tolist(), list(map(len, documents)))

    def test_made_tokens_are_those_of_sentencepiece(self):
        lines = (ROOT / "README.md").read_text() + "\u00fcber\t\ufb01n \u4e2d\u6587 \U0001f600  two\n \n\n\x07\n"
        (self.folder / "lines.txt").write_text(lines)
        one = "Words of one document, in a line of its own. " * 3000
        (self.folder / "one.txt").write_text(one)
        models = [self.trained("unigram", "--vocab_size=400"),
                  self.trained("bpe", "--vocab_size=700", "--model_type=bpe", "--byte_fallback=true"),
                  self.trained("char", "--vocab_size=70", "--model_type=char", "--normalization_rule_name=identity")]
        seen = []
        for model in models:
            size = len((self.folder / model).with_suffix(".vocab").read_text().splitlines())
            dtype = numpy.uint8 if size < 256 else numpy.uint16
            expected = [each for each in self.theirs(model, lines) if each]
            tokenizer = ("--tokenizer", model, "--overwrite")
            done = self.vpp("data", "make", "out.bin", "lines.txt", "--lines", "--end-token", "2", *tokenizer)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.expect_tokens([[*each, 2] for each in expected], dtype)
            self.assertEqual(done.stdout, f"wrote out.bin and its .idx, {sum(map(len, expected)) + len(expected)} "
                             f"tokens of {dtype().itemsize} byte{'s' if size > 255 else ''} in {len(expected)} "
                             f"documents, a vocabulary of {size}\n")
            done = self.vpp("data", "make", "out.bin", "one.txt", "one.txt", *tokenizer)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.expect_tokens(self.theirs(model, one + "\n") * 2, dtype)
            self.assertIn("no token stands between documents; --end-token 2 puts the model's own", done.stdout)
            self.assertIn(f"of {dtype().itemsize} byte", self.vpp("data", "info", "out.bin").stdout)
            seen.append((self.folder / "out.bin").read_bytes())
        self.assertEqual(len(set(seen)), 3, "the measure itself: models differ")

    def test_a_large_vocabulary_needs_wide_tokens(self):
        """A model of 70000 whole words, written as protobuf has it; the last word is token 69999."""
        def piece(text: str, kind: int) -> bytes:
            word = text.encode()
            body = b"\x0a" + bytes([len(word)]) + word + b"\x15" + struct.pack("<f", -1) + bytes([0x18, kind])
            return b"\x0a" + bytes([len(body)]) + body
        words = [f"\u2581w{number}" for number in range(69999)]
        model = piece("<unk>", 2) + b"".join(piece(word, 1) for word in words)
        (self.folder / "large.model").write_bytes(model)
        (self.folder / "words.txt").write_text("w0 w69998 w5")
        done = self.vpp("data", "make", "out.bin", "words.txt", "--tokenizer", "large.model")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.theirs("large.model", "w0 w69998 w5\n"), [[1, 69999, 6]])
        self.expect_tokens([[1, 69999, 6]], numpy.int32)
        told = self.vpp("data", "info", "out.bin").stdout
        self.assertIn("3 tokens of 4 bytes, values 1 to 69999\n  1 document of 3 to 3 tokens", told)
        torch.jit.script(Same()).save(str(self.folder / "model.pt"))
        (self.folder / "words.txt").write_text("w0 w69998 w5 " * 8)
        self.vpp("data", "make", "out.bin", "words.txt", "--tokenizer", "large.model", "--overwrite")
        files = 'train = ["out.bin"]\nval = ["out.bin"]\nsequence_length = 3\n'
        self.expect_equal(self.fed("tokens", "tokens", files)[:4], numpy.float32([[1, 69999, 6]] * 4))

    def test_a_broken_tokenizer_is_named(self):
        good = (self.folder / self.trained("m", "--vocab_size=300", "--normalization_rule_name=identity")).read_bytes()
        (self.folder / "a.txt").write_text("some words\n")
        command = ("data", "make", "out.bin", "a.txt", "--overwrite", "--tokenizer", "m.model")
        broken = [good[:-1], good[:2], b"\0", b"no model at all", good[5:], b"\xff" * 4096]
        for position in self.random.integers(0, len(good), 10):
            broken.append(good[:position] + bytes([self.random.integers(256)]) + good[position + 1:])
        ends = []
        for model in broken:
            (self.folder / "m.model").write_bytes(model)
            done = self.vpp(*command)
            ends.append(done.returncode)
            self.assertIn(done.returncode, (0, 65), done.stderr)
            if done.returncode:
                self.assertIn("m.model", done.stderr)
                self.assertRegex(done.stderr, "it is broken, or no SentencePiece model: copy or train it anew|"
                                              "a.txt: .*; where short ones fail too, copy or train the model anew")
                self.assertNotIn("out.bin", [path.name for path in self.folder.iterdir()])
            else:
                (self.folder / "out.bin").unlink()
                (self.folder / "out.idx").unlink()
        self.assertEqual(ends[:6], [65] * 6)
        done = self.vpp("data", "make", "out.bin", "a.txt", "--tokenizer", "none.model")
        self.assertEqual(done.returncode, 66)
        self.assertIn("none.model", done.stderr)
        (self.folder / "data").mkdir()
        done = self.vpp("data", "make", "data", "a.txt", "--tokenizer", "m.model")
        self.assertEqual(done.returncode, 2)
        self.assertIn("without --lines, --end-token and --tokenizer; for tokens name a file that ends with .bin",
                      done.stderr)
        (self.folder / "m.model").write_bytes(good)
        done = self.vpp("data", "make", "out.bin", "a.txt", "--tokenizer", "m.model", "--end-token", "-1")
        self.assertEqual(done.returncode, 2)
        (self.folder / "a.txt").write_text(" \n \n")
        done = self.vpp("data", "make", "out.bin", "a.txt", "--tokenizer", "m.model", "--lines")
        self.assertEqual(done.returncode, 65)
        self.assertIn("the tokenizer makes no token of the texts", done.stderr)

    def test_made_fields_are_the_columns_of_a_table(self):
        rows = self.random.standard_normal((50, 3))
        classes = self.random.integers(-5, 5, 50)
        (self.folder / "t.csv").write_text("a,b,c,class\n" + "".join(
            ",".join(map(repr, map(float, row))) + f",{label}\n" for row, label in zip(rows, classes)))
        (self.folder / "data").mkdir()
        done = self.vpp("data", "make", "data", "t.csv", "--field", "x=a,c", "--field", "y=class")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "wrote data/x.npy, float32 [50, 2]\nwrote data/y.npy, int64 [50]\n")
        x, y = (numpy.load(self.folder / f"data/{name}.npy") for name in "xy")
        self.expect_equal(x, rows[:, [0, 2]].astype(numpy.float32))
        self.expect_equal(y, classes)
        (self.folder / "t.csv").write_text("a,b\n1,2\n3,none\n")
        done = self.vpp("data", "make", "data", "t.csv")
        self.assertEqual(done.returncode, 65)
        self.assertIn("t.csv:3:3: no number (got 'none')", done.stderr)
        self.assertEqual(sorted(path.name for path in (self.folder / "data").iterdir()), ["x.npy", "y.npy"])
        for arguments, text in ((("x.bin", "t.csv", "--field", "a=b"), "--field is for tables, which go to a folder"),
                                (("data", "t.csv", "--lines"), "a folder gets the fields of one table"),
                                (("data", "t.csv", "--field", "=b"),
                                 "--field names a field and its columns, such as x=a,b (got '=b')"),
                                (("data", "t.csv", "--field", "x=a,"),
                                 "--field names a field and its columns, such as x=a,b (got 'x=a,')"),
                                (("data", "t.csv", "--field", "x=a,b,a"),
                                 "--field takes a column once (got 'x=a,b,a')")):
            done = self.vpp("data", "make", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    main()
