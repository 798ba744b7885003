"""A small U-Net that takes noise out of pictures: every level on the way up also sees its twin on the way down."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DoubleConv(nn.Module):
    """[n, in, y, x] -> [n, out, y, x]"""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1)
        self.gn2 = nn.GroupNorm(2, channels_out)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.gn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class UNet(nn.Module):
    """image [n, 1, 8, 8] -> the mean squared error between it and what is made of it with noise: the last op uses the
    model's input."""

    def __init__(self, width: int = 6, noise: float = 0.3) -> None:
        super().__init__()
        self.noise = noise
        self.down1 = DoubleConv(1, width)
        self.down2 = DoubleConv(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.bottom = DoubleConv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.join2 = DoubleConv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.join1 = DoubleConv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        skip1 = self.down1(image + self.noise * torch.randn_like(image))
        skip2 = self.down2(self.pool(skip1))
        x = self.bottom(self.pool(skip2))
        x = self.join2(torch.cat([skip2, self.up2(x)], 1))
        x = self.join1(torch.cat([skip1, self.up1(x)], 1))
        return F.mse_loss(torch.sigmoid(self.out(x)), image)
