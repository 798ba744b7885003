"""Two replicas on two ranks against one rank with as many microbatches, and against torch's DistributedDataParallel
over Gloo: the same GPT, the same samples a step, one thread a rank, in turns.

data_parallel.py VPP [--steps N] [--width D] [--rounds N]   prints medians, ratios, and the exposed time of the sums
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as processes

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
from gpt import GPT  # noqa: E402

ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMP_NUM_THREADS": "1"}
MICROBATCHES, SAMPLES, LENGTH = 4, 4, 128  # of a replica; of a microbatch; tokens of a sample


def plan(folder: pathlib.Path, replicas: int, microbatches: int, steps: int, zero1: bool) -> str:
    return f"""
[model]
file = "{folder}/gpt.pt"
[data]
kind = "text"
train = ["{ROOT}/models/data/stdlib.bin"]
sequence_length = {LENGTH}
[mesh]
pp = 1
dp = {replicas}
zero1 = {str(zero1).lower()}
[pipeline]
num_microbatches = {microbatches}
[train]
steps = {steps}
global_batch_size = {2 * MICROBATCHES * SAMPLES}
[optimizer]
clip_norm = 1.0
[run]
dir = "{folder}/run"
[checkpoint]
resume = "no"
every = 0
"""


def run_vpp(vpp: str, folder: pathlib.Path, replicas: int, steps: int, zero1: bool = False) -> list[dict]:
    """The step events without the first two."""
    path, metrics = folder / "plan.toml", folder / "run" / "metrics.jsonl"
    path.write_text(plan(folder, replicas, MICROBATCHES * 2 // replicas, steps, zero1))
    metrics.unlink(missing_ok=True)
    subprocess.run(["mpirun", "-q", "--oversubscribe", "-np", str(replicas), vpp, "train", "--config", str(path)],
                   check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    events = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [event for event in events if event["event"] == "step"][2:]


def train_ddp(rank: int, folder: str, width: int, layers: int, steps: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(1234)
    model = torch.nn.parallel.DistributedDataParallel(GPT(d=width, layers=layers, heads=4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0, fused=True)
    tokens = torch.randint(0, 256, (MICROBATCHES, SAMPLES, LENGTH + 1))
    seconds = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for i in range(MICROBATCHES):
            # Gradients are reduced in the last backward only.
            model.require_backward_grad_sync = i == MICROBATCHES - 1
            (model(tokens[i, :, :-1], tokens[i, :, 1:]) / MICROBATCHES).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        pathlib.Path(folder, "ddp.json").write_text(json.dumps(seconds[2:]))
    dist.destroy_process_group()


def run_ddp(folder: pathlib.Path, width: int, layers: int, steps: int) -> list[float]:
    processes.spawn(train_ddp, (str(folder), width, layers, steps), nprocs=2)
    return [1e3 * seconds for seconds in json.loads((folder / "ddp.json").read_text())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp", help="the program")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT) as name:
        folder = pathlib.Path(name)
        torch.manual_seed(1234)
        model = GPT(d=arguments.width, layers=arguments.layers, heads=4)
        torch.jit.script(model).save(str(folder / "gpt.pt"))
        print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, "
              f"{2 * MICROBATCHES} microbatches of {SAMPLES} x {LENGTH} tokens a step")
        times: dict[str, list[float]] = {}
        exposed: list[float] = []
        for _ in range(arguments.rounds):
            for label, replicas, zero1 in (("one rank", 1, False), ("two replicas", 2, False),
                                           ("two replicas, ZeRO-1", 2, True)):
                events = run_vpp(arguments.vpp, folder, replicas, arguments.steps, zero1)
                times.setdefault(label, []).extend(event["step_ms"] for event in events)
                if label == "two replicas":
                    exposed += [event["reduce_ms"] for event in events]
            ddp = run_ddp(folder, arguments.width, arguments.layers, arguments.steps)
            times.setdefault("torch DDP over Gloo", []).extend(ddp)
        two = statistics.median(times["two replicas"])
        for label, values in times.items():
            median = statistics.median(values)
            print(f"{label:24} {median:8.1f} ms a step; over two replicas {median / two:.2f}")
        print(f"exposed time of the sums: {statistics.median(exposed):.1f} ms, "
              f"{100 * statistics.median(exposed) / two:.1f} % of a step")


if __name__ == "__main__":
    main()
