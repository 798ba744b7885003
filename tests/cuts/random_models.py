"""Random cuts of random models: small trainable models drawn from PyTorch's ops in chains that nobody would write, with
odd sizes, views, writes in place, shared weights, buffers, randomness and control flow that follows the data.

    random_models.py --cuts PROGRAM --models N [--first SEED] [--every K] [--keep FOLDER] [KEY=VALUE ...]

Models SEED .. SEED + N - 1 are drawn and given to vpp_cuts, one after the other; exit code 1 if one of them differs or
fails. A model that passes is dropped, the others stay under FOLDER as SEED/{model.py, model.pt, plan.toml, log}.

Every statement is tried as it is drawn: what fails, grows too large or is not finite is left out, and a model that does
not train in plain PyTorch is replaced by the next one that its seed gives. The same PyTorch draws the same models.
"""

import argparse
import importlib.util
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from typing import Optional

import numpy as np
import torch

import random_layers
from random_flows import FLOWS, LATER
from random_ops import OPS
from random_pictures import PICTURES
from random_statements import DRAWS

SAMPLES_PER_MICROBATCH = 2
MICROBATCHES = 3
NUM_SAMPLES = 64
STEPS = 3
LR, WEIGHT_DECAY, CLIP_NORM = 1e-3, 0.1, 0.7
MOST_VALUES = 6000
LARGEST_VALUE = 1e3
VOCABULARY = 11


class NothingFits(Exception):
    """No value of the model so far is what an expression needs."""


class Draft:
    """A model as far as it is drawn: statements, what they are worth for one microbatch, parameters and buffers."""

    samples, vocabulary = SAMPLES_PER_MICROBATCH, VOCABULARY

    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        width = self.random.choice([7, 13, 16, 31, 33, 61, 64])
        self.width = width
        self.module = torch.nn.Module()
        self.statements = []
        self.made = {}  # value -> number of statements up to its own
        self.values = {"x": torch.randn(SAMPLES_PER_MICROBATCH, width)}
        self.indices = torch.randint(VOCABULARY, (SAMPLES_PER_MICROBATCH, 5))
        self.declarations = []
        self.num_names = 0
        self.pending = []  # what comes further down: (statements to go, lines, names that are known behind them)

    def name(self):
        self.num_names += 1
        return f"v{self.num_names}"

    def local(self):
        """A name for what is no value of the model but is used in several lines."""
        self.num_names += 1
        return f"k{self.num_names}"

    # What expressions ask for.

    def fitting(self, fits):
        names = [name for name, value in self.values.items() if fits(value)]
        if not names:
            raise NothingFits
        return names

    def tensor(self, fits=lambda t: True):
        """The name of a value that fits, of the late ones rather than of the early ones."""
        names = self.fitting(fits)
        return names[-1 - min(len(names) - 1, int(self.random.expovariate(0.5)))]

    def other(self, fits):
        """The name of any value that fits."""
        return self.random.choice(self.fitting(fits))

    def of_rank(self, *ranks):
        return self.tensor(lambda t: t.dim() in ranks)

    def like(self, name):
        shape = self.values[name].shape
        return self.other(lambda t: t.shape == shape)

    def broadcast_to(self, name):
        shape = self.values[name].shape
        return self.other(lambda t: t.dim() <= len(shape) and
                          all(a in (1, b) for a, b in zip(reversed(t.shape), reversed(shape))))

    def shape(self, name):
        return list(self.values[name].shape)

    def worth(self, expression):
        """What it gives for the values so far."""
        values = {name: value.clone() for name, value in self.values.items()}
        return eval(expression, {"torch": torch, "F": torch.nn.functional, "self": self.module} | values)

    def dim(self, name):
        rank = self.values[name].dim()
        if rank == 0:
            raise NothingFits
        return self.random.randrange(rank)

    def size(self):
        return self.random.choice([1, 3, 5, 7, 13, 16, 31, 61])

    def choice(self, *of):
        return self.random.choice(of)

    def parameter(self, *shape):
        fan_in = shape[-1] if len(shape) < 3 else torch.Size(shape[1:]).numel()
        return self.declare(f"torch.nn.Parameter(torch.randn({list(shape)}) * {fan_in ** -0.5})")

    def old_parameter(self, *shape):
        """A parameter of that shape that another statement has too, where there is one."""
        same = [name for name, parameter in self.module.named_parameters(recurse=False)
                if list(parameter.shape) == list(shape)]
        return "self." + self.random.choice(same) if same else self.parameter(*shape)

    def submodule(self, constructor):
        return self.declare(constructor)

    def old_submodule(self, constructor):
        """A submodule of that kind that another statement has too, where there is one."""
        same = [line.split()[0] for line in self.declarations if line.endswith(f" = {constructor}")]
        return self.random.choice(same) if same else self.submodule(constructor)

    def buffer(self, value):
        return self.declare(value, is_buffer=True)

    def declare(self, value, is_buffer=False):
        name = f"m{len(self.declarations)}"
        made = eval(value, {"torch": torch, "layers": random_layers, "__name__": __name__})
        if is_buffer:
            self.module.register_buffer(name, made)
            self.declarations.append(f"self.register_buffer('{name}', {value})")
        else:
            setattr(self.module, name, made)
            self.declarations.append(f"self.{name} = {value}")
        return "self." + name

    # How a statement becomes part of the model.

    def extend(self, draw):
        """One more statement, or False. `draw` gives an expression, or lines that set `out`."""
        num_declarations = len(self.declarations)
        try:
            code = draw(self)
            lines = code if isinstance(code, list) else [f"out = {code}"]
            scope = {"torch": torch, "F": torch.nn.functional, "Optional": Optional, "self": self.module,
                     "tokens": self.indices.clone()}
            scope |= {name: value.clone() for name, value in self.values.items()}  # statements write in place
            exec("\n".join(lines), scope)
            out = scope["out"]
            outs = list(out) if isinstance(out, (list, tuple)) else [out]
            if not all(usable(value) for value in outs):
                raise NothingFits
        except (NothingFits, RuntimeError, IndexError, ValueError, AssertionError, TypeError):
            self.forget(num_declarations)
            return False
        names = [self.name() for _ in outs]
        lines = [re.sub(r"\bout\b", names[0] if len(outs) == 1 else "parts", line) for line in lines]
        if len(outs) > 1:
            lines += [f"{name} = parts[{i}]" for i, name in enumerate(names)]
        self.write(lines, {name: value.detach() for name, value in zip(names, outs)})
        due, self.pending = self.pending, []
        for wait, rest, values in due:
            if wait > 0:
                self.pending.append((wait - 1, rest, values))
            else:
                self.write(rest, values)
        return True

    def write(self, lines, values):
        """Up to the first LATER; the rest follows behind some more statements, and the values with it."""
        if LATER in lines:
            here = lines.index(LATER)
            self.pending.append((self.random.randint(0, 4), lines[here + 1:], values))
            self.statements += lines[:here]
            return
        self.statements += lines
        for name, value in values.items():
            self.values[name] = value
            self.made[name] = len(self.statements)

    def finish(self):
        while self.pending:
            _, lines, values = self.pending.pop(0)
            self.write(lines, values)

    def forget(self, num_declarations):
        while len(self.declarations) > num_declarations:
            name = f"m{len(self.declarations) - 1}"
            delattr(self.module, name)
            self.declarations.pop()

    def source(self):
        leaves = [name for name, end in self.made.items()
                  if not any(re.search(rf"\b{name}\b", line) for line in self.statements[end:])]
        lines = ["loss = x.mean() * 0.01", *self.statements]
        lines += [f"loss = loss + (torch.tanh({name}) * {name}).mean()" for name in leaves]
        return "\n".join([
            "from typing import Optional", "",
            "import torch", "import torch.nn.functional as F", "",
            "import random_layers as layers", "", "",
            "class Model(torch.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            textwrap.indent("\n".join(self.declarations or ["pass"]), " " * 8), "",
            "    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:",
            textwrap.indent("\n".join(lines + ["return loss"]), " " * 8), ""])


def usable(value):
    return (isinstance(value, torch.Tensor) and value.dtype == torch.float32 and 0 < value.numel() <= MOST_VALUES and
            value.dim() <= 4 and bool(torch.isfinite(value).all()) and float(value.abs().max()) <= LARGEST_VALUE)


def draw_model(seed):
    draft = Draft(seed)
    wanted = draft.random.randint(6, 28)
    for _ in range(600):
        wanted -= draft.extend(draft.random.choice(draft.random.choice([DRAWS, DRAWS, FLOWS, FLOWS, PICTURES, OPS])))
        if wanted == 0:
            break
    draft.finish()
    return draft


def load_class(path):
    spec = importlib.util.spec_from_file_location("drawn", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model


def scripted_model(path, seed):
    torch.manual_seed(seed)
    return torch.jit.script(load_class(path)().train())


def trains(model, draft):
    """Whether PyTorch itself trains the model, with several samples, and some parameter of it."""
    for _ in range(4):
        x, tokens = torch.randn_like(draft.values["x"]), torch.randint_like(draft.indices, VOCABULARY)
        loss = model(x, tokens)
        if not loss.requires_grad or not bool(torch.isfinite(loss)):
            return False
        loss.backward()
    return any(parameter.grad is not None for parameter in model.parameters())


def write_data(folder, draft):
    torch.manual_seed(0)
    np.save(folder / "x.npy", torch.randn(NUM_SAMPLES, draft.width).numpy())
    np.save(folder / "tokens.npy", torch.randint(VOCABULARY, (NUM_SAMPLES, 5)).numpy())


def plan(folder):
    return f"""[model]
file = "{folder}/model.pt"
[data]
kind = "arrays"
[data.train]
x = "{folder}/x.npy"
tokens = "{folder}/tokens.npy"
[pipeline]
num_microbatches = {MICROBATCHES}
[optimizer]
lr = {LR}
weight_decay = {WEIGHT_DECAY}
clip_norm = {CLIP_NORM}
[train]
steps = {STEPS}
global_batch_size = {MICROBATCHES * SAMPLES_PER_MICROBATCH}
"""


def write_model(folder, seed, fits=lambda source: True):
    """Writes model.py, model.pt, plan.toml and the data of the first model of the seed that trains and fits."""
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(50):
        draft = draw_model(seed * 50 + attempt)
        source = draft.source()
        if not fits(source):
            continue
        (folder / "model.py").write_text(source)
        try:
            if not trains(scripted_model(folder / "model.py", seed), draft):
                continue
        except RuntimeError:  # a write in place to what backward needs; a statement that only Python runs
            continue
        scripted_model(folder / "model.py", seed).save(str(folder / "model.pt"))
        write_data(folder, draft)
        (folder / "plan.toml").write_text(plan(folder))
        return
    raise SystemExit(f"seed {seed}: none of 50 models trains")


SUMMARY = re.compile(r"(\d+) ops, (\d+) cuts legal, (\d+) refused .*?, (\d+) runs, (\d+) values, (\d+) different")


def run_cuts(folder, options):
    """Gives ops, legal, refused, runs, values and different, and whether all is well."""
    command = [options.cuts, folder / "plan.toml", "--every", str(options.every), "--three", "8", *options.settings]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    (folder / "log").write_text(done.stdout)
    found = SUMMARY.search(done.stdout)
    return [int(count) for count in found.groups()] if found else [0] * 6, found is not None and done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", required=True, help="vpp_cuts")
    parser.add_argument("--models", type=int, required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--every", type=int, default=3)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "vpp_random_models")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="changes of the plan")
    options = parser.parse_args()
    sys.dont_write_bytecode = True
    torch.set_num_threads(1)
    totals, num_failed = [0] * 6, 0
    for seed in range(options.first, options.first + options.models):
        folder = options.keep.resolve() / str(seed)
        write_model(folder, seed)
        counts, is_well = run_cuts(folder, options)
        totals = [total + count for total, count in zip(totals, counts)]
        if is_well:
            shutil.rmtree(folder)
            continue
        num_failed += 1
        print(f"{folder}:\n{(folder / 'log').read_text()[:2000]}", flush=True)
    ops, legal, refused, runs, values, different = totals
    share = 100 * refused / max(1, legal + refused)
    print(f"{options.models} models, {ops} ops, {legal} cuts legal, {refused} refused ({share:.1f} %)")
    print(f"{runs} runs, {values} values, {different} different; {num_failed} models failed")
    return 1 if num_failed or runs == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
