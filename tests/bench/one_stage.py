"""One-stage vpp against the same step in eager PyTorch: same plan, weights, microbatches, clipping, optimizer, threads.

one_stage.py VPP [--config PLAN] [--steps N]   prints the median step of both in milliseconds, and their ratio
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
from gpt import GPT  # noqa: E402

WARM_UP = 10  # steps that are not counted


def vpp_steps_ms(vpp: str, config: pathlib.Path, steps: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "pipeline.num_stages": 1,
            "train.steps": steps,
            "train.eval_every": 0,
            "checkpoint.every": 0,
            "report.every": 1,
            "run.dir": f"{folder}/run",
        }
        options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        subprocess.run([vpp, "train", "--config", str(config), *options], check=True, stdout=subprocess.DEVNULL)
        events = map(json.loads, pathlib.Path(folder, "run", "metrics.jsonl").read_text().splitlines())
        return [event["step_ms"] for event in events if event["event"] == "step"]


def eager_steps_ms(plan: dict, folder: pathlib.Path, steps: int) -> list[float]:
    torch.set_num_threads(plan.get("mesh", {}).get("threads", 1))
    num_microbatches, t = plan["pipeline"]["num_microbatches"], plan["data"]["sequence_length"]
    batch = plan["train"]["global_batch_size"]
    text = torch.frombuffer(bytearray((folder / plan["data"]["train"][0]).read_bytes()), dtype=torch.uint8).long()
    model = GPT().train()
    model.load_state_dict(torch.jit.load(str(folder / plan["model"]["file"])).state_dict())
    values = plan["optimizer"]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=values["lr"], betas=values["betas"], weight_decay=values["weight_decay"], fused=True
    )
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        first = torch.randint((len(text) - 1) // t, (batch,)) * t
        windows = torch.stack([text[i : i + t + 1] for i in first])
        optimizer.zero_grad(set_to_none=True)
        for part in windows.chunk(num_microbatches):
            loss = model(part[:, :-1].contiguous(), part[:, 1:].contiguous())
            (loss / num_microbatches).backward()
            loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), values["clip_norm"])
        optimizer.step()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vpp", help="the program")
    parser.add_argument("--config", type=pathlib.Path, default=ROOT / "configs" / "quickstart.toml", help="a GPT plan")
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    if arguments.steps <= 2 * WARM_UP:
        parser.error(f"--steps must be over {2 * WARM_UP}")
    plan = tomllib.loads(arguments.config.read_text())
    # Python before and after vpp: a machine whose clock drifts shows as two different figures.
    eager = [eager_steps_ms(plan, arguments.config.parent, arguments.steps)]
    ours = statistics.median(vpp_steps_ms(arguments.vpp, arguments.config, arguments.steps)[WARM_UP:])
    eager.append(eager_steps_ms(plan, arguments.config.parent, arguments.steps))
    before, after = (statistics.median(times[WARM_UP:]) for times in eager)
    print(f"eager Python: {before:.1f} and {after:.1f} ms a step (before and after vpp)")
    print(f"vpp, one stage: {ours:.1f} ms a step; ratio {ours / statistics.mean((before, after)):.3f}")


if __name__ == "__main__":
    main()
