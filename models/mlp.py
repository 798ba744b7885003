"""Eight small MLP blocks in a row, named as in veScale's own pipeline example. Regression: x [n, 32] -> y [n, 32]."""

from torch import Tensor, nn


class MLP(nn.Module):
    """Linear to twice the width, GELU, linear back; no bias, as in the example."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(features, 2 * features, bias=False)
        self.gelu = nn.GELU()
        self.fc2 = nn.Linear(2 * features, features, bias=False)
        # Keeps the scale of values and gradients over eight blocks; with torch's default both all but vanish.
        nn.init.kaiming_normal_(self.fc1.weight)
        nn.init.xavier_normal_(self.fc2.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.gelu(self.fc1(x)))


class EightMLP(nn.Module):
    """The blocks are attributes and no list, so that a split point is just `mlp2`."""

    def __init__(self, features: int = 32) -> None:
        super().__init__()
        self.mlp1 = MLP(features)
        self.mlp2 = MLP(features)
        self.mlp3 = MLP(features)
        self.mlp4 = MLP(features)
        self.mlp5 = MLP(features)
        self.mlp6 = MLP(features)
        self.mlp7 = MLP(features)
        self.mlp8 = MLP(features)

    def forward(self, x: Tensor) -> Tensor:
        x = self.mlp1(x)
        x = self.mlp2(x)
        x = self.mlp3(x)
        x = self.mlp4(x)
        x = self.mlp5(x)
        x = self.mlp6(x)
        x = self.mlp7(x)
        return self.mlp8(x)
