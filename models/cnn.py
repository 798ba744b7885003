"""Small classifiers: image [n, channels, size, size] -> logits [n, classes]; by default of the 8x8 digits."""

from torch import Tensor, nn


class VGG(nn.Module):
    """3x3 convolutions, pooling behind each group of them, then linear layers with dropout; no normalisation."""

    def __init__(
        self,
        channels: int = 1,
        size: int = 8,
        groups: tuple[tuple[int, ...], ...] = ((32, 32), (64, 64)),
        hidden: tuple[int, int] = (128, 64),
        classes: int = 10,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for widths in groups:
            for width in widths:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(channels * (size >> len(groups)) ** 2, hidden[0]),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(hidden[0], hidden[1]),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(hidden[1], classes),
        )
        for layer in self.features:
            if isinstance(layer, nn.Conv2d):  # with torch's default the values of eight convolutions all but vanish
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")

    def forward(self, image: Tensor) -> Tensor:
        return self.classifier(self.features(image).flatten(1))


class ConvBlock(nn.Module):
    """Convolution, BatchNorm, ReLU."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels_out)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.bn(self.conv(x)))


def vgg11(width: int = 16) -> VGG:
    """VGG's configuration A for pictures of CIFAR-10's size, with a quarter of its channels."""
    groups = ((width,), (2 * width,), (4 * width, 4 * width), (8 * width, 8 * width), (8 * width, 8 * width))
    return VGG(channels=3, size=32, groups=groups, hidden=(256, 256))


class BatchNormCNN(nn.Module):
    """Convolutions with BatchNorm: running statistics are buffers that every microbatch advances."""

    def __init__(self, classes: int = 10, width: int = 16) -> None:
        super().__init__()
        self.block1 = ConvBlock(1, width)
        self.block2 = ConvBlock(width, width)
        self.pool1 = nn.MaxPool2d(2)
        self.block3 = ConvBlock(width, 2 * width)
        self.block4 = ConvBlock(2 * width, 2 * width)
        self.pool2 = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.pool1(self.block2(self.block1(image)))
        x = self.pool2(self.block4(self.block3(x)))
        return self.head(x.flatten(1))
