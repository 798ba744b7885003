"""Two small classifiers of the 8x8 digits: image [n, 1, 8, 8] -> logits [n, 10]."""

from torch import Tensor, nn


class VGG(nn.Module):
    """Pairs of 3x3 convolutions, pooling between them, then linear layers with dropout, as in VGG; no normalisation."""

    def __init__(self, classes: int = 10, width: int = 32) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Linear(2 * width * 2 * 2, 128),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(128, 64),
            nn.ReLU(inplace=True),
            nn.Dropout(0.5),
            nn.Linear(64, classes),
        )

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
