"""A byte LSTM. Shapes: n samples, t positions, d width."""

import torch.nn.functional as F
from torch import Tensor, nn


class ByteLSTM(nn.Module):
    """tokens, targets [n, t] -> the mean cross-entropy in nats per byte.

    A layer is a module of its own, so that stages can begin between two of them.
    """

    def __init__(self, d: int = 96, layers: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, d)
        self.layers = nn.ModuleList([nn.LSTM(d, d, batch_first=True) for _ in range(layers)])
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(d, 256)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = self.drop(layer(x)[0])
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())
