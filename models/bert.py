"""A small BERT over bytes: what hidden bytes were, from both sides. Shapes: n samples, t positions, d width."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder_decoder import EncoderLayer

MASK = 256  # stands in the place of a hidden byte


class BERT(nn.Module):
    """tokens [n, t] -> the mean cross-entropy of those bytes that were hidden, in nats.

    Which ones is drawn anew in every step. The table of the embedding also makes the logits.
    """

    def __init__(self, d: int = 48, layers: int = 4, heads: int = 4, max_t: int = 64, hidden: float = 0.15) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(MASK + 1, d)
        self.positions = nn.Parameter(0.02 * torch.randn(max_t, d))
        self.layers = nn.ModuleList([EncoderLayer(d, heads) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d))
        self.bias = nn.Parameter(torch.zeros(MASK + 1))
        nn.init.normal_(self.embedding.weight, std=0.05)

    def forward(self, tokens: Tensor) -> Tensor:
        is_hidden = torch.rand_like(tokens, dtype=torch.float) < self.hidden
        x = self.embedding(tokens.masked_fill(is_hidden, 256)) + self.positions[: tokens.size(1)]
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.head(x), self.embedding.weight, self.bias)
        targets = tokens.masked_fill(~is_hidden, -100)  # cross_entropy leaves these out
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
