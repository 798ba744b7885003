"""A small GPT over bytes, embedding and head tied on request. Shapes: n samples, t positions, d width, h heads."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        n, t, d = x.size(0), x.size(1), x.size(2)
        parts = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)  # [3, n, h, t, d / h]
        q, k, v = parts.unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(n, t, d))


class Block(nn.Module):
    """One pre-norm transformer layer: the unit that plans name in smallest_unsplittable_units."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(d)
        self.attn = Attention(d, heads)
        self.ln2 = nn.LayerNorm(d)
        self.up = nn.Linear(d, 4 * d)
        self.gelu = nn.GELU()
        self.down = nn.Linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln1(x))
        return x + self.down(self.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    """tokens [n, t], targets [n, t] -> the mean cross-entropy in nats per byte."""

    def __init__(
        self,
        vocabulary: int = 256,
        d: int = 128,
        layers: int = 6,
        heads: int = 4,
        max_t: int = 128,
        tie_weights: bool = False,
    ) -> None:
        super().__init__()
        self.token_embedding = nn.Embedding(vocabulary, d)
        self.position_embedding = nn.Embedding(max_t, d)
        self.blocks = nn.ModuleList([Block(d, heads) for _ in range(layers)])
        self.ln_out = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocabulary, bias=False)
        if tie_weights:
            self.head.weight = self.token_embedding.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # What each layer adds to the residual stream is scaled down with depth (GPT-2).
                into_residual = name.endswith(("proj.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * layers) ** 0.5 if into_residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        positions = torch.arange(tokens.size(1), device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(positions)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_out(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
