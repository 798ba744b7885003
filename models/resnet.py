"""ResNet for pictures of CIFAR-10's size: image [n, 3, 32, 32] -> logits [n, 10]."""

import torch.nn.functional as F
from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """Two convolutions with BatchNorm, and past them the input, which a 1x1 convolution fits where shapes differ."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """6 x blocks + 2 layers: ResNet-20 with three blocks at each of three widths."""

    def __init__(self, blocks: int = 3, width: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        widths = [width] * blocks + [2 * width] * blocks + [4 * width] * blocks
        self.blocks = nn.Sequential(
            *(
                ResidualBlock(before, after, 1 if before == after else 2)
                for before, after in zip([width, *widths], widths)
            )
        )
        self.head = nn.Linear(4 * width, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.blocks(F.relu(self.bn(self.conv(image))))
        return self.head(x.mean((2, 3)))
