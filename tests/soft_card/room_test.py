"""A model whose stages all use what the first one makes has a link from the first rank to each other one.
VPP_SOFT_CARDS says how many cards there are."""

import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from tiny_model import PLAN  # noqa: E402
from vpp_process import Case  # noqa: E402


class Shared(torch.nn.Module):
    def __init__(self, num_layers: int):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.rest = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(num_layers - 1))

    def forward(self, x):
        shared = torch.relu(self.first(x))
        h = shared
        for layer in self.rest:
            h = torch.tanh(layer(h)) + shared
        return h


class Room(Case):
    def inspect(self, num_stages: int, *settings: str):
        torch.jit.script(Shared(num_stages)).save(str(self.folder / "model.pt"))
        words = [f"mesh.pp={num_stages}", f"pipeline.num_stages={num_stages}", *settings]
        return self.vpp("inspect", self.plan(PLAN), *(word for one in words for word in ("--set", one)))

    def test_more_links_than_a_card_keeps_apart_are_refused(self):
        done = self.inspect(10)
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn("rank 0 would have 10 links to other cards by NCCL, and a card keeps 9 apart", done.stderr)
        for settings in ((10, "mesh.transport=mpi"), (10, "mesh.device=cpu"), (9,)):
            with self.subTest(settings):
                done = self.inspect(*settings)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
