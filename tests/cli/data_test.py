"""Data formats as other programs read them: what vpp feeds to a model, against torchvision and numpy, bit for bit."""

import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import numpy  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
from vpp_process import Case, main  # noqa: E402

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


class Same(torch.nn.Module):
    """Gives what it gets."""

    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.one


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


if __name__ == "__main__":
    main()
