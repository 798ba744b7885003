"""Exports models for tests, scripted and traced, in train mode, with fixed weights: torchvision's for small images,
with their data, and those of small_models.py.

make_models.py [NAME ...] [--models FOLDER]   writes FOLDER/out/NAME.pt, FOLDER/out/NAME_traced.pt and
                                              FOLDER/data/images_{image,label}.npy

A file newer than this script and the pinned versions is kept.
"""

import argparse
import pathlib
import sys
from collections.abc import Callable

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (pathlib.Path(__file__), ROOT / "scripts" / "requirements.txt")
SMALL_SOURCES = (
    *SOURCES,
    pathlib.Path(__file__).with_name("small_models.py"),
    ROOT / "models" / "encoder_decoder.py",
    ROOT / "models" / "gpt.py",
)
SEED = 1234
CLASSES = 10
SIZE = 64  # pixels: five halvings leave 2x2, so that BatchNorm has several values even for one sample

# What a model of torchvision needs besides the number of classes. train.py makes its modules by the same tables.
TORCHVISION: dict[str, dict] = {
    "resnet18": {},
    "mobilenet_v2": {},
    "squeezenet1_1": {},
    "googlenet": {"aux_logits": False, "init_weights": False},
    "densenet121": {},
}
SMALL = ("gpt_small", "transformer", "penalized", "dropout")
MODELS = (*TORCHVISION, *SMALL)


def make_model(name: str):
    """The eager module in train mode; its weights depend on the name alone."""
    import torch

    torch.manual_seed(SEED)
    if name in SMALL:
        return small_models().MODELS[name][0]().train()
    import torchvision

    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **TORCHVISION[name]).train()


def small_models():
    """The module; it needs torch and sources of models/, which a call that has nothing to do should not wait for."""
    sys.path.insert(0, str(ROOT / "models"))
    import small_models

    return small_models


def example_inputs(name: str) -> tuple:
    import torch

    return small_models().MODELS[name][1]() if name in SMALL else (torch.rand(2, 3, SIZE, SIZE),)


def make_data(folder: pathlib.Path, samples: int = 64) -> None:
    """Images are noise over a pattern of their class, so that a step has something to learn."""
    random = np.random.RandomState(SEED)  # the generator whose stream NumPy keeps for ever
    label = random.randint(0, CLASSES, samples)
    patterns = random.standard_normal((CLASSES, 3, SIZE, SIZE))
    image = patterns[label] + random.standard_normal((samples, 3, SIZE, SIZE))
    write(folder / "images_image.npy", lambda path: np.save(path, image.astype(np.float32)))
    write(folder / "images_label.npy", lambda path: np.save(path, label.astype(np.int64)))


def export(name: str, path: pathlib.Path, trace: bool) -> None:
    import torch

    model = make_model(name)
    if trace:
        # Dropout draws other masks in the tracer's check.
        module = torch.jit.trace(model, example_inputs(name), check_trace=False)
        module.load_state_dict(make_model(name).state_dict())  # tracing runs the model once: BatchNorm has moved
    else:
        module = torch.jit.script(model)
    write(path, lambda temporary: module.save(str(temporary)))


def is_current(path: pathlib.Path, sources: tuple[pathlib.Path, ...] = SOURCES) -> bool:
    return path.exists() and all(path.stat().st_mtime > source.stat().st_mtime for source in sources)


def write(path: pathlib.Path, save: Callable[[pathlib.Path], None]) -> None:
    """Under its name only when it is whole. The temporary name keeps the ending, which np.save would add."""
    temporary = path.with_name("part_" + path.name)
    save(temporary)
    temporary.replace(path)
    print(f"{path}: {path.stat().st_size} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(MODELS)}; default: all")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / "models")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in MODELS]
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    for folder in ("data", "out"):
        (arguments.models / folder).mkdir(parents=True, exist_ok=True)
    if not all(is_current(arguments.models / "data" / f"images_{field}.npy") for field in ("image", "label")):
        make_data(arguments.models / "data")
    for name in arguments.names or MODELS:
        for ending, trace in (("", False), ("_traced", True)):
            path = arguments.models / "out" / f"{name}{ending}.pt"
            if not is_current(path, SMALL_SOURCES if name in SMALL else SOURCES):
                export(name, path, trace)


if __name__ == "__main__":
    main()
