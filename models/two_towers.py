"""A model that is no chain: two towers see the two halves of a digit, upper [n, 1, 4, 8] and lower [n, 1, 4, 8].

Every submodule is what a plan with a module per stage calls: several inputs, several outputs, a skip over a stage.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class UpperTower(nn.Module):
    """image [n, 1, 4, 8] -> features [n, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.out = nn.Linear(8 * 4 * 8, width)

    def forward(self, image: Tensor) -> Tensor:
        return torch.tanh(self.out(self.relu(self.conv(image)).flatten(1)))


class LowerTower(nn.Module):
    """image [n, 1, 4, 8] -> features [n, width] and a gate [n, width] in 0..1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.out = nn.Linear(8 * 4 * 8, width)
        self.gate = nn.Linear(8 * 4 * 8, width)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.relu(self.bn(self.conv(image))).flatten(1)
        return torch.tanh(self.out(x)), torch.sigmoid(self.gate(x))


class Mix(nn.Module):
    """Two times [n, width] -> [n, width]; what is not a sum is not the same with its arguments swapped."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.both = nn.Linear(2 * width, width)

    def forward(self, first: Tensor, second: Tensor) -> Tensor:
        return F.gelu(self.both(torch.cat([first, second], 1)))


class Head(nn.Module):
    """mixed, features and gate [n, width] -> logits [n, classes]."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, classes)

    def forward(self, mixed: Tensor, features: Tensor, gate: Tensor) -> Tensor:
        return self.out(self.drop(mixed) * gate + features)


class TwoTowers(nn.Module):
    """The whole as one model: upper, lower -> logits [n, 10]."""

    def __init__(self, width: int = 48, classes: int = 10) -> None:
        super().__init__()
        self.upper = UpperTower(width)
        self.lower = LowerTower(width)
        self.mix = Mix(width)
        self.head = Head(width, classes)

    def forward(self, upper: Tensor, lower: Tensor) -> Tensor:
        up = self.upper(upper)
        low, gate = self.lower(lower)
        return self.head(self.mix(up, low), up, gate)
