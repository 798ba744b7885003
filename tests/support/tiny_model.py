"""A model of one layer by PyTorch, and a plan that trains it on made-up data."""

import numpy
import torch

PLAN = """
[model]
file = "model.pt"
[loss]
kind = "mse"
target = "y"
[data]
kind = "synthetic"
samples = 16
[data.fields]
x = "float32[4]"
y = "float32[4]"
[pipeline]
num_stages = 1
num_microbatches = 2
[train]
steps = 1
global_batch_size = 4
"""


ARRAYS_PLAN = PLAN.replace(PLAN[PLAN.index("kind = \"synthetic\"") : PLAN.index("[pipeline]")],
                           'kind = "arrays"\ntrain = { x = "x.npy", y = "y.npy" }\n')

# Samples of their own lengths.
LENGTHS_PLAN = ARRAYS_PLAN.replace('y = "y.npy"', 'lengths = "lengths.npy", y = "y.npy"')


def save_arrays(folder, num_zeros: int) -> None:
    """Random samples for ARRAYS_PLAN. The x of the first ones, with which models are prepared, are zeros."""
    samples = numpy.random.default_rng(1).standard_normal((16, 4)).astype(numpy.float32)
    numpy.save(folder / "y.npy", samples)
    samples[:num_zeros] = 0
    numpy.save(folder / "x.npy", samples)


def save_tokens(folder, lengths: list[int]) -> None:
    """Random samples for LENGTHS_PLAN and Trims, in an order that stays."""
    random = numpy.random.default_rng(1)
    numpy.save(folder / "x.npy", random.integers(0, 20, (len(lengths), max(lengths))))
    numpy.save(folder / "y.npy", random.standard_normal((len(lengths), 4)).astype(numpy.float32))
    numpy.save(folder / "lengths.npy", numpy.array(lengths))


class Trims(torch.nn.Module):
    """Takes of its tokens as many as the longest sample of the microbatch has."""

    def __init__(self, width: int):
        super().__init__()
        self.embedding = torch.nn.Embedding(20, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))
        self.out = torch.nn.Linear(width, 4)

    def forward(self, x, lengths):
        h = self.embedding(x[:, : int(lengths.max())])
        for layer in self.layers:
            h = torch.relu(layer(h))
        return self.out(h.mean(1))


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)
