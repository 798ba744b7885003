"""Two towers that learn which caption belongs to which picture. Shapes: n samples, t positions, d width."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from encoder_decoder import EncoderLayer


class ImageTower(nn.Module):
    """image [n, 1, 8, 8] -> [n, d]"""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, d // 2, 3, padding=1)
        self.conv2 = nn.Conv2d(d // 2, d, 3, stride=2, padding=1)
        self.out = nn.Linear(d * 4 * 4, d)

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.conv2(F.relu(self.conv1(image))))
        return F.normalize(self.out(x.flatten(1)), dim=1)


class TextTower(nn.Module):
    """caption [n, t], bytes -> [n, d]"""

    def __init__(self, d: int, layers: int, heads: int, max_t: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, d)
        self.positions = nn.Parameter(0.02 * torch.randn(max_t, d))
        self.layers = nn.ModuleList([EncoderLayer(d, heads) for _ in range(layers)])
        self.out = nn.Linear(d, d)

    def forward(self, caption: Tensor) -> Tensor:
        x = self.embedding(caption) + self.positions[: caption.size(1)]
        for layer in self.layers:
            x = layer(x)
        return F.normalize(self.out(x.mean(1)), dim=1)


class ImageText(nn.Module):
    """image [n, 1, 8, 8], caption [n, t] -> the mean loss over all n x n pairs: do these two belong together?

    A pair does when its captions are equal. Pictures with captions are all it takes, as in SigLIP."""

    def __init__(self, d: int = 32, layers: int = 2, heads: int = 2, max_t: int = 16) -> None:
        super().__init__()
        self.image_tower = ImageTower(d)
        self.text_tower = TextTower(d, layers, heads, max_t)
        self.scale = nn.Parameter(torch.tensor(10.0).log())
        self.bias = nn.Parameter(torch.tensor(-5.0))

    def forward(self, image: Tensor, caption: Tensor) -> Tensor:
        similarity = self.image_tower(image) @ self.text_tower(caption).t()
        belongs = (caption[:, None] == caption[None]).all(-1).float()
        return F.binary_cross_entropy_with_logits(self.scale.exp() * similarity + self.bias, belongs)
