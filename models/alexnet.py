"""AlexNet for pictures of CIFAR-10's size: image [n, 3, 32, 32] -> logits [n, 10]."""

from torch import Tensor, nn


class AlexNet(nn.Module):
    """Five convolutions, three pooled, then three linear layers with dropout: kernels and channels of the original,
    paddings for 32 pixels instead of 224, and a narrower end."""

    def __init__(self, classes: int = 10, hidden: int = 512, dropout: float = 0.5) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 64, 11, stride=4, padding=5),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 192, 5, padding=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(192, 384, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(384, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Conv2d(256, 256, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.classifier(self.features(image).flatten(1))
