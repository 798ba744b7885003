"""A byte GPT with mixtures of experts. Shapes: n samples, t positions, d width, e experts.

Every expert sees every position, and a gate is zero where the position did not choose it: the same values as with
sorting positions by expert, more work, and no shape that depends on values, which no cut could foresee.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gpt import Attention


class MixtureOfExperts(nn.Module):
    """x [n, t, d] -> the same shape from the best of the experts, and how unevenly they are used: 1 at best."""

    def __init__(self, d: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(d, experts, bias=False)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(experts)]
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        probability = self.router(x).softmax(-1)
        best, index = probability.topk(self.chosen, -1)
        gate = torch.zeros_like(probability).scatter(-1, index, best / best.sum(-1, keepdim=True))  # [n, t, e]
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            y = y + gate[..., i : i + 1] * expert(x)
        use = (gate > 0).float().mean((0, 1)) / self.chosen
        return y, probability.size(-1) * (use * probability.mean((0, 1))).sum()


class MoEBlock(nn.Module):
    """A transformer layer whose feed-forward part is a mixture."""

    def __init__(self, d: int, heads: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, heads)
        self.mixture = MixtureOfExperts(d, experts, chosen)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x + self.attn(self.ln1(x))
        y, unevenness = self.mixture(self.ln2(x))
        return x + y, unevenness


class MoEGPT(nn.Module):
    """tokens, targets [n, t] -> the mean cross-entropy in nats per byte, plus the unevenness of every layer."""

    def __init__(
        self,
        d: int = 48,
        layers: int = 2,
        heads: int = 4,
        experts: int = 4,
        chosen: int = 2,
        max_t: int = 64,
        balance: float = 0.01,
    ) -> None:
        super().__init__()
        self.balance = balance
        self.embedding = nn.Embedding(256, d)
        self.positions = nn.Parameter(0.02 * torch.randn(max_t, d))
        self.blocks = nn.ModuleList([MoEBlock(d, heads, experts, chosen) for _ in range(layers)])
        self.ln_out = nn.LayerNorm(d)
        self.head = nn.Linear(d, 256, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        x = self.embedding(tokens) + self.positions[: tokens.size(1)]
        penalty = torch.zeros([])
        for block in self.blocks:
            x, unevenness = block(x)
            penalty = penalty + unevenness
        loss = F.cross_entropy(self.head(self.ln_out(x)).flatten(0, 1), targets.flatten())
        return loss.add(penalty, alpha=self.balance)
