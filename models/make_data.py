"""Makes the example data under models/data from what every machine with Python and scikit-learn has.

stdlib.bin, stdlib_val.bin   text of Python's standard library, for data.kind = "text"
digits_{train,val}_{image,upper,lower,label}.npy   scikit-learn's 8x8 digits, scaled to 0..1, whole and in halves
digits_{train,val}_caption.npy   a caption of each: "the digit seven" in 16 bytes
digits_cifar_{train,val}.bin the same digits as 32x32 colour pictures, in the binary form of CIFAR-10
mlp_{train,val}_{x,y}.npy    a smooth random map for the regression example

The same files of the standard library, and the same scikit-learn, give the same bytes.
"""

import argparse
import pathlib
import sysconfig

import numpy as np
from sklearn.datasets import load_digits

TRAIN_BYTES = 4_000_000
VAL_BYTES = 200_000
DIGITS_VAL = 288
CAPTIONS = [f"the digit {name}" for name in "zero one two three four five six seven eight nine".split()]


def make_text(folder: pathlib.Path) -> None:
    """Whole files: every twentieth goes to the validation part until it is full, so that both parts are alike."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    skipped = {"site-packages", "dist-packages", "test", "tests", "__pycache__"}
    files = [f for f in library.rglob("*.py") if not skipped & set(f.relative_to(library).parts)]
    train, val = bytearray(), bytearray()
    for i, file in enumerate(sorted(files, key=lambda f: f.relative_to(library).as_posix())):
        part, limit = (val, VAL_BYTES) if i % 20 == 0 else (train, TRAIN_BYTES)
        part += file.read_bytes()[: limit - len(part)]
    (folder / "stdlib.bin").write_bytes(train)
    (folder / "stdlib_val.bin").write_bytes(val)


def save_split(folder: pathlib.Path, name: str, fields: dict[str, np.ndarray], num_val: int) -> None:
    for field, values in fields.items():
        np.save(folder / f"{name}_train_{field}.npy", values[num_val:])
        np.save(folder / f"{name}_val_{field}.npy", values[:num_val])


def make_digits(folder: pathlib.Path) -> None:
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))  # the generator whose stream NumPy keeps for ever
    image = (digits.images[order, None] / 16).astype(np.float32)
    halves = {"upper": image[:, :, :4].copy(), "lower": image[:, :, 4:].copy()}
    label = digits.target[order].astype(np.int64)
    caption = np.array([list(text.ljust(16).encode()) for text in CAPTIONS])[label]
    save_split(folder, "digits", {"image": image, **halves, "caption": caption, "label": label}, num_val=DIGITS_VAL)
    make_cifar(folder, image[:, 0], label)


def make_cifar(folder: pathlib.Path, image: np.ndarray, label: np.ndarray) -> None:
    """A record: the label, then 32 x 32 bytes of red, of green and of blue. A pixel becomes a square of 4 x 4."""
    large = np.rint(255 * image).astype(np.uint8).repeat(4, 1).repeat(4, 2)
    records = np.concatenate([label[:, None].astype(np.uint8), np.tile(large.reshape(len(label), -1), 3)], 1)
    records[DIGITS_VAL:].tofile(folder / "digits_cifar_train.bin")
    records[:DIGITS_VAL].tofile(folder / "digits_cifar_val.bin")


def make_mlp(folder: pathlib.Path, features: int = 32, samples: int = 1280) -> None:
    random = np.random.RandomState(0)
    x = random.standard_normal((samples, features)).astype(np.float32)
    y = np.tanh(x @ random.standard_normal((features, features)) / features**0.5).astype(np.float32)
    save_split(folder, "mlp", {"x": x, "y": y}, num_val=256)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "data")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    make_text(folder)
    make_digits(folder)
    make_mlp(folder)
    for file in sorted(folder.iterdir()):
        print(f"{file}: {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
