"""Writes the example models as TorchScript files, in train mode, with fixed initial weights; some also in parts.
What is traced has a second file each, in eval mode, for model.eval_file of a plan.

python models/export.py [NAME ...] [--trace] [--out FOLDER]
"""

import argparse
import copy
import pathlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from alexnet import AlexNet
from bert import BERT
from cnn import VGG, BatchNormCNN, vgg11
from encoder_decoder import EncoderDecoder
from gpt import GPT
from image_text import ImageText
from lstm import ByteLSTM
from mlp import EightMLP
from moe import MoEGPT
from resnet import ResNet
from two_towers import TwoTowers
from unet import UNet

SEED = 1234


def bytes_of(*shape: int) -> Tensor:
    return torch.randint(256, shape)


# The module, and example inputs of two samples: what tracing needs, and what the script is tried on.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "mlp": (EightMLP, lambda: (torch.randn(2, 32),)),
    "gpt": (GPT, lambda: (bytes_of(2, 128), bytes_of(2, 128))),
    "gpt_tied": (
        lambda: GPT(d=32, layers=3, heads=2, max_t=32, tie_weights=True),
        lambda: (bytes_of(2, 32), bytes_of(2, 32)),
    ),
    "vgg": (VGG, lambda: (torch.rand(2, 1, 8, 8),)),
    "vgg11": (vgg11, lambda: (torch.rand(2, 3, 32, 32),)),
    "alexnet": (AlexNet, lambda: (torch.rand(2, 3, 32, 32),)),
    "bn_cnn": (BatchNormCNN, lambda: (torch.rand(2, 1, 8, 8),)),
    "bn_cnn_channels_last": (
        lambda: BatchNormCNN().to(memory_format=torch.channels_last),
        lambda: (torch.rand(2, 1, 8, 8),),
    ),
    "resnet20": (ResNet, lambda: (torch.rand(2, 3, 32, 32),)),
    "unet": (UNet, lambda: (torch.rand(2, 1, 8, 8),)),
    "two_towers": (TwoTowers, lambda: (torch.rand(2, 1, 4, 8), torch.rand(2, 1, 4, 8))),
    "image_text": (ImageText, lambda: (torch.rand(2, 1, 8, 8), bytes_of(2, 16))),
    "bert": (BERT, lambda: (bytes_of(2, 64),)),
    "encoder_decoder": (EncoderDecoder, lambda: (bytes_of(2, 32), bytes_of(2, 32))),
    "moe": (MoEGPT, lambda: (bytes_of(2, 64), bytes_of(2, 64))),
    "lstm": (ByteLSTM, lambda: (bytes_of(2, 64), bytes_of(2, 64))),
}

# Models whose submodules are written one by one too, with the same weights: NAME_SUBMODULE.pt, for a plan's own stages.
PARTS = {"mlp", "two_towers"}


def make_model(name: str) -> nn.Module:
    """The eager module in train mode; its weights depend on the name alone, not on what was made before."""
    torch.manual_seed(SEED)
    return MODELS[name][0]().train()


def trace_twins(model: nn.Module, inputs: tuple[Tensor, ...], path: pathlib.Path) -> pathlib.Path:
    """A trace has one mode: writes one in train mode, and beside it one in eval mode, whose path it gives."""
    twin = path.with_stem(f"{path.stem}_eval")
    for training, file in ((True, path), (False, twin)):
        # A copy, since tracing runs the model once. Dropout draws other masks in the tracer's check, so the check is
        # left to vpp's own tests.
        traced = torch.jit.trace(copy.deepcopy(model).train(training), inputs, check_trace=False)
        traced.load_state_dict(model.state_dict())  # BatchNorm has moved
        traced.save(str(file))
    return twin


def export(name: str, folder: pathlib.Path, trace: bool) -> pathlib.Path:
    model = make_model(name)
    path = folder / f"{name}{'_traced' if trace else ''}.pt"
    if trace:
        twin = trace_twins(model, MODELS[name][1](), path)
        print(f'[model]\nfile      = "{path}"\neval_file = "{twin}"')
    else:
        torch.jit.script(model).save(str(path))
    return path


def export_parts(name: str, folder: pathlib.Path) -> None:
    for part, module in make_model(name).named_children():
        torch.jit.script(module).save(str(folder / f"{name}_{part}.pt"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(MODELS)}; default: all")
    parser.add_argument("--trace", action="store_true",
                        help="trace instead of script: NAME_traced.pt, and NAME_traced_eval.pt in eval mode")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "out")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in MODELS]
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}; there are {', '.join(MODELS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names or MODELS:
        path = export(name, arguments.out, arguments.trace)
        if name in PARTS and not arguments.trace:
            export_parts(name, arguments.out)
        parameters = sum(p.numel() for p in make_model(name).parameters())
        print(f"{path}: {parameters} parameters")


if __name__ == "__main__":
    main()
