"""GPTs of published sizes as TorchScript files without weights: vpp plans them as they are, [[model.init]] fills them.

python models/weightless.py SHAPE [--out FOLDER]
"""

import argparse
import pathlib
from collections.abc import Callable

import torch
from torch import nn

from gpt import GPT

# Layers, width, heads. 6.7B: Brown et al. 2020 (arXiv 2005.14165), table 2.1; the others: Korthikanti et al. 2022
# (arXiv 2205.05198), table 3.
SHAPES = {
    "6.7B": (32, 4096, 32),
    "22B": (48, 6144, 64),
    "175B": (96, 12288, 96),
    "530B": (105, 20480, 128),
    "1T": (128, 25600, 160),
}
SEQUENCE_LENGTH, VOCABULARY = 2048, 51200


def without_weights(build: Callable[[], nn.Module]) -> nn.Module:
    """The module that `build` makes, with parameters of one element each, spread by strides of 0. Nothing is allocated,
    so it must have no buffers: those need their values."""
    with torch.device("meta"):
        model = build()
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(torch.zeros(1).expand(parameter.shape)))
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "out")
    arguments = parser.parse_args()
    layers, d, heads = SHAPES[arguments.shape]
    model = without_weights(lambda: GPT(VOCABULARY, d, layers, heads, max_t=SEQUENCE_LENGTH))
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.jit.script(model).save(str(arguments.out / f"gpt_{arguments.shape}.pt"))


if __name__ == "__main__":
    main()
