"""Every layer of the decoder asks what the encoder made. Shapes: n samples, t and s positions, d width."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    """x [n, t, d] asks memory [n, s, d]; causal when it asks itself in order."""

    def __init__(self, d: int, heads: int, causal: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.q = nn.Linear(d, d)
        self.kv = nn.Linear(d, 2 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        n, t, d = x.size(0), x.size(1), x.size(2)
        q = self.q(x).view(n, t, self.heads, d // self.heads).transpose(1, 2)
        k, v = self.kv(memory).view(n, memory.size(1), 2, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout, is_causal=self.causal)
        return self.proj(y.transpose(1, 2).reshape(n, t, d))


class EncoderLayer(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        y = self.ln1(x)
        x = x + self.attn(y, y)
        return x + self.mlp(self.ln2(x))


class DecoderLayer(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.ln2, self.ln3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = Attention(d, heads, causal=True)
        self.cross = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        y = self.ln1(x)
        x = x + self.attn(y, y)
        x = x + self.cross(self.ln2(x), memory)
        return x + self.mlp(self.ln3(x))


class EncoderDecoder(nn.Module):
    """tokens, targets [n, t]: reads the first half of the tokens and goes on with the second; cross-entropy of that.

    One embedding serves encoder, decoder and output; every layer of the decoder uses the memory.
    """

    def __init__(self, vocabulary: int = 256, d: int = 24, layers: int = 2, heads: int = 2, max_t: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, d)
        self.positions = nn.Parameter(0.02 * torch.randn(max_t, d))
        self.encoder = nn.ModuleList([EncoderLayer(d, heads) for _ in range(layers)])
        self.ln_memory = nn.LayerNorm(d)
        self.decoder = nn.ModuleList([DecoderLayer(d, heads) for _ in range(layers)])
        self.ln_out = nn.LayerNorm(d)
        nn.init.normal_(self.embedding.weight, std=0.05)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        source, prefix = tokens.chunk(2, 1)
        memory = self.embedding(source) + self.positions[: source.size(1)]
        for layer in self.encoder:
            memory = layer(memory)
        memory = self.ln_memory(memory)
        x = self.embedding(prefix) + self.positions[source.size(1) : tokens.size(1)]
        for layer in self.decoder:
            x = layer(x, memory)
        logits = F.linear(self.ln_out(x), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.chunk(2, 1)[1].flatten())
