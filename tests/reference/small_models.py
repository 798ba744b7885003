"""Models that only tests want, beside those of models/: a GPT smaller than the quickstart's, torch's own transformer,
and randomness of every kind.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder_decoder import Attention
from gpt import GPT


class DropoutBlock(nn.Module):
    """Attention that drops weights, and dropout on both branches of the residual stream."""

    def __init__(self, d: int, heads: int, p: float) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, heads, dropout=p)
        self.drop1, self.drop2 = nn.Dropout(p), nn.Dropout(p, inplace=True)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln1(x)
        x = x + self.drop1(self.attn(y, y))
        return x + self.drop2(self.down(F.gelu(self.up(self.ln2(x)))))


class Dropouts(nn.Module):
    """image [n, 1, 8, 8] -> logits [n, 10]: dropout of channels, of attention, of elements, in place, and of none."""

    def __init__(self, classes: int = 10, d: int = 16, heads: int = 2, p: float = 0.2) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, d, 3, stride=2, padding=1)
        self.channels = nn.Dropout2d(p)
        self.blocks = nn.ModuleList([DropoutBlock(d, heads, p) for _ in range(2)])
        self.selu = nn.SELU()
        self.alpha = nn.AlphaDropout(p)
        self.never = nn.Dropout(0.0)
        self.head = nn.Linear(d, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.channels(self.conv(image)).flatten(2).transpose(1, 2)  # [n, 16, d]
        for block in self.blocks:
            x = block(x)
        return self.head(self.never(self.alpha(self.selu(x.mean(1)))))


class Transformer(nn.Module):
    """tokens, targets [n, t] -> cross-entropy. The branches of nn.MultiheadAttention return early: values that do not
    exist go over cuts."""

    def __init__(self, d: int = 16, heads: int = 2, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, d)
        layer = nn.TransformerEncoderLayer(d, heads, 2 * d, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(d, 256)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.encoder(self.embedding(tokens))
        return F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())


class Penalized(nn.Module):
    """tokens, targets [n, t] -> cross-entropy and penalties, joined by numbers as one writes them in Python."""

    def __init__(self, d: int = 16) -> None:
        super().__init__()
        self.embedding, self.up, self.head = nn.Embedding(256, d), nn.Linear(d, d), nn.Linear(d, 256)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = torch.tanh(self.up(self.embedding(tokens)))
        loss = F.cross_entropy(self.head(x).flatten(0, 1), targets.flatten())
        size, spread = x.pow(2).mean(), x.std()
        return loss * 0.9 + 0.01 * size + (1 - spread) / 3 - 0.1 * (2.5 - spread) * size


def tokens_and_targets() -> tuple[Tensor, ...]:
    return torch.randint(256, (2, 32)), torch.randint(256, (2, 32))


# The module, and example inputs of two samples, as in models/export.py.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "gpt_small": (lambda: GPT(d=32, layers=3, heads=2, max_t=32), tokens_and_targets),
    "transformer": (Transformer, tokens_and_targets),
    "penalized": (Penalized, tokens_and_targets),
    "dropout": (Dropouts, lambda: (torch.rand(2, 1, 8, 8),)),
}
