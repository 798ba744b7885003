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


def save_arrays(folder, num_zeros: int) -> None:
    """Random samples for ARRAYS_PLAN. The x of the first ones, with which models are prepared, are zeros."""
    samples = numpy.random.default_rng(1).standard_normal((16, 4)).astype(numpy.float32)
    numpy.save(folder / "y.npy", samples)
    samples[:num_zeros] = 0
    numpy.save(folder / "x.npy", samples)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)
