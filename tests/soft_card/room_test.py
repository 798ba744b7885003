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


NO_ROOM = "a card keeps 9 links by NCCL apart, so what goes from rank 0 to "


class Room(Case):
    def words(self, num_stages: int, *settings: str) -> list[str]:
        torch.jit.script(Shared(num_stages)).save(str(self.folder / "model.pt"))
        words = [f"mesh.pp={num_stages}", f"pipeline.num_stages={num_stages}", *settings]
        return [self.plan(PLAN), *(word for one in words for word in ("--set", one))]

    def inspect(self, num_stages: int, *settings: str):
        return self.vpp("inspect", *self.words(num_stages, *settings))

    def test_what_finds_no_room_for_a_link_is_said(self):
        for settings, said in (((11,), True), ((11, "mesh.transport=mpi"), False), ((9,), False)):
            with self.subTest(settings):
                done = self.inspect(*settings)
                self.assertEqual(done.returncode, 0, done.stderr)
                words = " ".join(done.stdout.split())
                self.assertEqual(NO_ROOM in words, said, words)

    def test_what_finds_no_room_for_a_link_has_the_bits_of_one_device(self):
        words = self.words(11, "train.steps=6")
        done = self.vpp("train", *words, "--set", "run.dir=run", ranks=11)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(NO_ROOM, done.stdout + done.stderr)
        done = self.vpp("verify", *words, "--steps", "6", ranks=11)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
