"""What a save costs: the quickstart's GPT scaled to 50 M parameters on four ranks, saved every other step, once in the
background and once not.

save_pause.py VPP [--steps N]   prints the pause of a save, also as a share of a step, and when it is durable
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "models"))
from gpt import GPT  # noqa: E402

ENVIRONMENT = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def events(vpp: str, model: pathlib.Path, folder: pathlib.Path, steps: int, background: bool) -> list[dict]:
    run = folder / f"run-{background}"
    settings = {
        "model.file": model,
        "train.steps": steps,
        "train.eval_every": 0,
        "lr_schedule.kind": "constant",
        "lr_schedule.warmup_steps": 0,
        "checkpoint.every": 2,
        "checkpoint.keep": 1,
        "checkpoint.background": str(background).lower(),
        "run.dir": run,
    }
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    subprocess.run(["mpirun", "-q", "--oversubscribe", "-np", "4", vpp, "train", "--config",
                    str(ROOT / "configs/quickstart.toml"), *options], check=True, env=ENVIRONMENT,
                   stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp", help="the program")
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT) as name:
        folder = pathlib.Path(name)
        torch.manual_seed(1234)
        model = GPT(d=768, layers=7, heads=12)
        torch.jit.script(model).save(str(folder / "gpt.pt"))
        print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters, 4 ranks")
        for background in (True, False):
            found = events(arguments.vpp, folder / "gpt.pt", folder, arguments.steps, background)
            step_s = statistics.median(e["step_ms"] / 1e3 for e in found if e["event"] == "step")
            # The save behind the last step is waited for in both modes.
            saves = [e for e in found if e["event"] == "save" and e["step"] < arguments.steps]
            pauses = [e["pause_seconds"] for e in saves]
            median, worst = statistics.median(pauses), max(pauses)
            durable_s = statistics.median(e["seconds"] for e in saves)
            print(f"{'in the background' if background else 'waited for'}: {len(saves)} saves of "
                  f"{saves[0]['size_bytes'] / 1e6:.0f} MB; pause {median * 1e3:.0f} ms (worst {worst * 1e3:.0f} ms) in "
                  f"steps of {step_s * 1e3:.0f} ms: {100 * median / step_s:.1f} % (worst "
                  f"{100 * worst / step_s:.1f} %); durable after {durable_s:.1f} s")


if __name__ == "__main__":
    main()
