"""A model of one layer by PyTorch, and a plan that trains it on made-up data."""

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


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)
