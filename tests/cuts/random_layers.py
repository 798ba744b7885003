"""Modules of the random models (random_models.py) that are more than a statement: state that is written, loops over
submodules, routing, interfaces. Each takes the width of its input, which it gives again."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor


class Halves(NamedTuple):
    left: Tensor
    right: Tensor
    count: int


class Split(torch.nn.Module):
    """A named tuple, of views or of other tensors."""

    def __init__(self, width: int, copies: bool):
        super().__init__()
        self.half, self.copies = (width + 1) // 2, copies

    def halves(self, x: Tensor) -> Halves:
        left, right = x[..., :self.half], x[..., self.half:]
        if self.copies:
            left = left * 1.0
        return Halves(left, right, x.shape[-1])

    def forward(self, x: Tensor) -> Tensor:
        parts = self.halves(x * 1.0)
        parts.left.mul_(0.5)
        return torch.cat([torch.tanh(parts.right), parts.left], -1) * (1.0 / parts.count)


class Routed(torch.nn.Module):
    """Experts, of which each sample goes through one: some get nothing."""

    def __init__(self, width: int, num_experts: int):
        super().__init__()
        self.gate = torch.nn.Linear(width, num_experts)
        self.experts = torch.nn.ModuleList([torch.nn.Linear(width, width) for _ in range(num_experts)])
        self.register_buffer("load", torch.zeros(num_experts))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        weights, chosen = torch.softmax(self.gate(rows), -1).max(-1)
        out = torch.zeros_like(rows)
        for i, expert in enumerate(self.experts):
            mine = (chosen == i).nonzero().squeeze(1)
            self.load[i] += mine.numel()
            if mine.numel() > 0:
                out = out.index_add(0, mine, expert(rows[mine]) * weights[mine].unsqueeze(-1))
        return out.reshape(x.shape)


class Masked(torch.nn.Module):
    """Experts whose results are put in place where a mask says so."""

    def __init__(self, width: int):
        super().__init__()
        self.layers = torch.nn.ModuleDict({"low": torch.nn.Linear(width, width), "high": torch.nn.Linear(width, width)})
        self.calls: Dict[str, int] = {"low": 1, "high": 2}

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        out = rows * 0.5
        mask = rows.mean(-1) > 0
        for name, layer in self.layers.items():
            mine = mask if name == "high" else ~mask
            for _ in range(self.calls[name]):
                out[mine] = torch.tanh(layer(out[mine]))
        return out.reshape(x.shape)


class Codebook(torch.nn.Module):
    """Vectors that follow what they stand for; the gradient goes straight through."""

    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("codes", torch.randn(5, width))
        self.register_buffer("sizes", torch.ones(5))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        chosen = torch.cdist(rows.detach(), self.codes).argmin(-1)
        found = self.codes[chosen]
        if self.training:
            with torch.no_grad():
                hot = torch.nn.functional.one_hot(chosen, 5).to(rows.dtype)
                self.sizes.mul_(0.9).add_(hot.sum(0), alpha=0.1)
                self.codes.mul_(0.9).add_(hot.t() @ rows / self.sizes.unsqueeze(-1), alpha=0.1)
        found = rows + (found - rows).detach()
        return found.reshape(x.shape) + 0.1 * (found - rows.detach()).pow(2).mean()


class Queue(torch.nn.Module):
    """Former samples in a buffer that is written at a place which another buffer says."""

    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("queue", torch.randn(6, width))
        self.register_buffer("place", torch.zeros(1, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])[:2]
        near = torch.softmax(rows @ self.queue.clone().t(), -1) @ self.queue.clone()
        with torch.no_grad():
            place = int(self.place)
            self.queue[place:place + rows.shape[0]] = rows
            self.place[0] = (place + rows.shape[0]) % 4
        return x + near.mean(0)


class Spectral(torch.nn.Module):
    """A weight over its norm, which a vector kept in a buffer finds step by step."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(width, width))
        self.register_buffer("u", torch.nn.functional.normalize(torch.randn(width), dim=0))

    def normed(self) -> Tensor:
        with torch.no_grad():
            v = torch.nn.functional.normalize(torch.mv(self.weight.t(), self.u), dim=0)
            self.u.copy_(torch.nn.functional.normalize(torch.mv(self.weight, v), dim=0))
            u = self.u.clone()
        return self.weight / torch.dot(u, torch.mv(self.weight, v))

    def forward(self, x: Tensor) -> Tensor:
        return torch.nn.functional.linear(torch.tanh(torch.nn.functional.linear(x, self.normed())), self.normed())


class Started(torch.nn.Module):
    """Scale and shift that the first microbatch of all sets."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))
        self.shift = torch.nn.Parameter(torch.zeros(width))
        self.register_buffer("started", torch.tensor(False))

    def forward(self, x: Tensor) -> Tensor:
        if not bool(self.started):
            with torch.no_grad():
                rows = x.reshape(-1, x.shape[-1])
                self.shift.copy_(-rows.mean(0))
                self.scale.copy_(1.0 / (rows.std(0) + 1.0))
                self.started.fill_(True)
        return (x + self.shift) * self.scale


class Scanned(torch.nn.Module):
    """A recurrence by hand over a tuple of states, left early as the data have it."""

    def __init__(self, width: int, leaves: bool):
        super().__init__()
        self.cell = torch.nn.LSTMCell(width, width)
        self.leaves = leaves

    def forward(self, x: Tensor) -> Tensor:
        steps = x.reshape(-1, x.shape[-1])[:4]
        state = (torch.zeros_like(steps[:1]), torch.zeros_like(steps[:1]))
        seen: List[Tensor] = []
        for i in range(steps.shape[0]):
            state = self.cell(steps[i:i + 1], state)
            seen.append(state[0])
            if self.leaves and bool(state[1].mean() > 0.05):
                break
        return x + torch.cat(seen).mean(0) * len(seen)


@torch.jit.interface
class Step:
    def forward(self, x: Tensor) -> Tensor:
        pass


class Kept(torch.nn.Module):
    """Gives what it is given."""

    def forward(self, x: Tensor) -> Tensor:
        return x


class Rectified(torch.nn.Module):
    """Gives what it is given, written in place."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(x)


class Counted(torch.nn.Module):
    """Counts its calls in a buffer, and in what it gives."""

    def __init__(self, width: int):
        super().__init__()
        self.layer = torch.nn.Linear(width, width)
        self.register_buffer("calls", torch.zeros([], dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tanh(self.layer(x)) * (1.0 + 0.1 * self.calls)


class Chain(torch.nn.Module):
    """Modules behind an interface; one stands in two places."""

    def __init__(self, width: int, writes: bool):
        super().__init__()
        counted = Counted(width)
        self.steps = torch.nn.ModuleList([counted, Kept(), Rectified() if writes else Kept(), Kept(), counted])

    def forward(self, x: Tensor) -> Tensor:
        middle: Step = self.steps[1]
        x = middle.forward(x * 1.0)
        for i, step in enumerate(self.steps):
            if i != 2 or x.dim() > 1:
                x = step(x)
        return x


class Pyramid(torch.nn.Module):
    """Levels in a dict and a list, which grow and are taken out again from the end."""

    def __init__(self, width: int):
        super().__init__()
        self.down = torch.nn.ModuleList([torch.nn.Linear(width, width) for _ in range(3)])
        self.up = torch.nn.ModuleList([torch.nn.Linear(2 * width, width) for _ in range(2)])
        self.norm = torch.nn.BatchNorm1d(width)

    def forward(self, x: Tensor) -> Tensor:
        skips: List[Tensor] = []
        levels: Dict[str, Tensor] = {}
        for i, layer in enumerate(self.down):
            x = self.norm(torch.nn.functional.silu(layer(x)).reshape(-1, x.shape[-1])).reshape(x.shape)
            skips.append(x)
            levels[f"level{i}"] = x
        x = skips.pop()
        for layer in self.up:
            x = torch.relu_(layer(torch.cat([x, skips.pop()], -1)))
        return x + levels["level0"] * len(levels)


class Cached(torch.nn.Module):
    """Writes a part of a buffer and reads it by another view, with an optional argument."""

    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, width))

    def forward(self, x: Tensor, scale: Optional[Tensor] = None) -> Tensor:
        rows = x.detach().reshape(-1, x.shape[-1])
        count = min(rows.shape[0], 3)
        self.cache[1:1 + count] = rows[:count]
        head = self.cache[0]
        head.lerp_(self.cache[1], 0.25)
        out = x + self.cache[:count].mean(0)
        return out if scale is None else out * scale


class Pair(torch.nn.Module):
    """A recurrent layer that goes on from its own last state, and hands that out."""

    def __init__(self, kind: str, width: int):
        super().__init__()
        self.layer = torch.nn.LSTM(width, width) if kind == "LSTM" else torch.nn.LSTM(width, width, num_layers=2)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        first, state = self.layer(x)
        second, (hidden, cell) = self.layer(torch.tanh(first), state)
        return first + second, (hidden * cell).mean(0)
