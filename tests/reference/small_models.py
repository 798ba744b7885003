"""Small models for tests of what is no chain: skips over the whole depth, an encoder's memory that every layer of a
decoder uses, tied weights, and randomness of every kind. Shapes: n samples, t positions, d width, h heads.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gpt import GPT


class DoubleConv(nn.Module):
    """[n, in, y, x] -> [n, out, y, x]"""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1)
        self.gn2 = nn.GroupNorm(2, channels_out)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.gn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


class UNet(nn.Module):
    """image [n, 1, 8, 8] -> how well it is drawn again, the mean squared error: the last op uses the model's input."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.down1 = DoubleConv(1, width)
        self.down2 = DoubleConv(width, 2 * width)
        self.pool = nn.MaxPool2d(2)
        self.bottom = DoubleConv(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.join2 = DoubleConv(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.join1 = DoubleConv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        skip1 = self.down1(image)
        skip2 = self.down2(self.pool(skip1))
        x = self.bottom(self.pool(skip2))
        x = self.join2(torch.cat([skip2, self.up2(x)], 1))
        x = self.join1(torch.cat([skip1, self.up1(x)], 1))
        return F.mse_loss(torch.sigmoid(self.out(x)), image)


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


def small_gpt(tie_weights: bool) -> GPT:
    return GPT(d=32, layers=3, heads=2, max_t=32, tie_weights=tie_weights)


def tokens_and_targets() -> tuple[Tensor, ...]:
    return torch.randint(256, (2, 32)), torch.randint(256, (2, 32))


def digits() -> tuple[Tensor, ...]:
    return (torch.rand(2, 1, 8, 8),)


# The module, and example inputs of two samples, as in models/export.py.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]] = {
    "gpt_small": (lambda: small_gpt(False), tokens_and_targets),
    "gpt_tied": (lambda: small_gpt(True), tokens_and_targets),
    "dropout": (Dropouts, digits),
    "unet": (UNet, digits),
    "encoder_decoder": (EncoderDecoder, tokens_and_targets),
}
