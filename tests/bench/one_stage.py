"""One-stage vpp against the same step in eager PyTorch: same plan, weights, microbatches, clipping, optimizer, threads.

one_stage.py VPP [--config PLAN] [--rounds N] [--steps N] [--device cuda] [--recompute]
prints the median step of both and their ratio

All take turns, so that a machine whose speed drifts slows all; a ratio is formed within a round, and what is printed is
its median over the rounds and its range. On a card PyTorch runs as it is and with exact kernels, as vpp always does
there; on the CPU these are the same. Both have CUBLAS_WORKSPACE_CONFIG set. vpp runs as it
is and, there, op by op (pipeline.cuda_graphs = false). With --recompute both run each block's ops again in backward.
"""

import argparse
import fnmatch
import functools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("models", "tests/support")]
from exact_kernels import use_exact_kernels  # noqa: E402
from gpt import GPT  # noqa: E402

OURS = "vpp, one stage"


def vpp_steps_ms(arguments: argparse.Namespace, replayed: bool) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "pipeline.num_stages": 1,
            "train.steps": arguments.steps,
            "train.eval_every": 0,
            "lr_schedule.kind": "constant",
            "lr_schedule.warmup_steps": 0,
            "checkpoint.every": 0,
            "report.every": 1,
            "run.dir": f"{folder}/run",
            "mesh.device": arguments.device,
            "pipeline.cuda_graphs": str(replayed).lower(),
            "pipeline.recompute.what": "units" if arguments.recompute else "none",
        }
        options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        subprocess.run([arguments.vpp, "train", "--config", str(arguments.config), *options], check=True,
                       stdout=subprocess.DEVNULL)
        events = map(json.loads, pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines())
        return [event["step_ms"] for event in events if event["event"] == "step"]


class Eager:
    """Stock PyTorch with the weights, the optimizer and the batches of a plan."""

    def __init__(self, plan: dict, folder: pathlib.Path, device: str, exact: bool, recompute: bool) -> None:
        self.device, self.exact = device, exact
        torch.set_num_threads(plan.get("mesh", {}).get("threads", 1))
        self.num_microbatches, self.t = plan["pipeline"]["num_microbatches"], plan["data"]["sequence_length"]
        self.batch = plan["train"]["global_batch_size"]
        text = bytearray((folder / plan["data"]["train"][0]).read_bytes())
        self.text = torch.frombuffer(text, dtype=torch.uint8).long()
        self.model = GPT().train()
        weights = torch.jit.load(str(folder / plan["model"]["file"]), map_location="cpu").state_dict()
        self.model.load_state_dict(weights)
        self.model.to(device)
        if recompute:
            for block in self.model.blocks:
                block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        values = dict(plan["optimizer"])
        self.clip_norm = values.pop("clip_norm")
        groups = [(group.pop("match"), group | {"params": []}) for group in map(dict, values.pop("group", []))]
        groups.append((["*"], {"params": []}))
        for name, parameter in self.model.named_parameters():
            group = next(group for match, group in groups if any(fnmatch.fnmatchcase(name, glob) for glob in match))
            group["params"].append(parameter)
        assert values.pop("kind") == "adamw", "a plan with adamw is needed"
        self.optimizer = torch.optim.AdamW([group for _, group in groups if group["params"]], fused=True, **values)

    def step(self) -> None:
        first = torch.randint((len(self.text) - 1) // self.t, (self.batch,)) * self.t
        windows = torch.stack([self.text[i : i + self.t + 1] for i in first]).to(self.device)
        self.optimizer.zero_grad(set_to_none=True)
        losses = []
        for part in windows.chunk(self.num_microbatches):
            loss = self.model(part[:, :-1].contiguous(), part[:, 1:].contiguous())
            (loss * (1 / self.num_microbatches)).backward()
            losses.append(loss.detach())
        nn.utils.clip_grad_norm_(self.model.parameters(), self.clip_norm)
        self.optimizer.step()
        torch.stack(losses).tolist()  # read once, as vpp does: each reading waits for the card

    def steps_ms(self, steps: int) -> list[float]:
        if self.device == "cuda":
            use_exact_kernels(self.exact)
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            times.append((time.perf_counter() - start) * 1e3)
        return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp", help="the program")
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "configs" / "quickstart.toml", help="a GPT plan")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=25, help="of each side in a round")
    parser.add_argument("--warm-up", type=int, default=5, help="steps of a round that are not counted")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where both compute")
    parser.add_argument("--recompute", action="store_true", help="blocks, on both sides")
    arguments = parser.parse_args()
    if arguments.steps <= 2 * arguments.warm_up or arguments.rounds < 1:
        parser.error(f"--steps must be over {2 * arguments.warm_up}, and --rounds at least 1")

    def eager(exact: bool) -> Callable[[], list[float]]:
        plan = tomllib.loads(arguments.config.read_text())
        side = Eager(plan, arguments.config.parent, arguments.device, exact, arguments.recompute)
        return lambda: side.steps_ms(arguments.steps)

    sides = {"eager Python": eager(exact=False)}
    if arguments.device == "cuda":
        sides = {"vpp, op by op": lambda: vpp_steps_ms(arguments, replayed=False), **sides}
        sides["eager Python with exact kernels"] = eager(exact=True)
    sides[OURS] = lambda: vpp_steps_ms(arguments, replayed=True)
    medians: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(arguments.rounds):
        for side in sides if number % 2 == 0 else reversed(sides):  # who goes first changes
            medians[side].append(statistics.median(sides[side]()[arguments.warm_up:]))
        print(f"round {number + 1}: " + ", ".join(f"{side} {medians[side][-1]:.1f} ms" for side in sides))
    print("a step: " + ", ".join(f"{side} {statistics.median(medians[side]):.1f} ms" for side in sides))
    for side, theirs in medians.items():
        if side == OURS:
            continue
        ratios = [ours / other for ours, other in zip(medians[OURS], theirs, strict=True)]
        spread = f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} rounds"
        print(f"ratio to {side}: {statistics.median(ratios):.3f} ({spread})")


if __name__ == "__main__":
    main()
