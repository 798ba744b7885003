"""How the step of each schedule grows with the latency between two hosts, against the simulator: a rank on each of two
hosts made from namespaces (tests/support/namespaces.py). The simulator gets the times of the stages that were measured
without a delay, and the delay as the cost of a message.

latency.py VPP [--steps N] [--microbatches N] [--delays 0,2,20] [--schedules A,B]     prints a table
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
os.environ.setdefault("VPP_BINARY", sys.argv[1] if len(sys.argv) > 1 else "")
import namespaces  # noqa: E402
from vpp_process import DIGITS, ENVIRONMENT  # noqa: E402

# Stages of a rank.
SCHEDULES = {"GPIPE": 1, "1F1B": 1, "EAGER_1F1B": 1, "INTERLEAVED_1F1B": 2, "LOOPED_BFS": 2, "ZERO_BUBBLE_H1": 1,
             "ZERO_BUBBLE_H2": 1, "ZERO_BUBBLE_V": 2}
SAMPLES = 32  # of a microbatch


def measure(arguments, schedule: str, delay_ms: float) -> dict:
    """What the run says of its pipeline: the mean of all steps but the first two."""
    settings = [f"pipeline.schedule_type={schedule}", f"pipeline.virtual_chunks={SCHEDULES[schedule]}",
                f"pipeline.num_microbatches={arguments.microbatches}", f"train.steps={arguments.steps}",
                f"train.global_batch_size={SAMPLES * arguments.microbatches}", "run.dir=run", "checkpoint.every=0"]
    with tempfile.TemporaryDirectory(prefix="vpp-latency-") as place:
        folder = pathlib.Path(place)
        (folder / "plan.toml").write_text(DIGITS)
        with namespaces.Network(folder, delay_ms=delay_ms) as network:
            # MPI connects and vpp exchanges shapes in the first steps, which are left out.
            subprocess.run([*network.hosts[0].enter(), "env", f"OMPI_MCA_plm_rsh_agent={network.agent}",
                            "OMPI_MCA_mpi_yield_when_idle=1", arguments.vpp, "run", "--host", network.slots(),
                            str(folder / "plan.toml"), *(word for setting in settings for word in ("--set", setting))],
                           env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=600)
            lines = (network.hosts[0].folder / "run/metrics.jsonl").read_text().splitlines()
            found = next(line for line in map(json.loads, lines) if line["event"] == "pipeline")
            found["one_way_ms"] = network.round_trip_ms() / 2
            return found


def simulated_ms(arguments, schedule: str, without_delay: dict, one_way_ms: float) -> float:
    def times(name: str) -> str:
        return "/".join(f"{stage[name] / arguments.microbatches:.6f}" for stage in without_delay["stages"])

    halves = "input_ms" in without_delay["stages"][0]
    costs = f"F={times('forward_ms')}," + (f"I={times('input_ms')},W={times('weight_ms')}" if halves
                                           else f"B={times('backward_ms')}")
    done = subprocess.run([arguments.vpp, "schedule", "simulate", "--schedule", schedule, "--pp", "2", "--virtual",
                           str(SCHEDULES[schedule]), "--microbatches", str(arguments.microbatches), "--costs",
                           f"{costs},comm={one_way_ms}", "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["makespan"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vpp")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--microbatches", type=int, default=8)
    parser.add_argument("--delays", default="0,2,20", help="one way, milliseconds; begins with 0")
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    arguments = parser.parse_args()
    arguments.vpp = str(pathlib.Path(arguments.vpp).resolve())
    if reason := namespaces.why_not():
        sys.exit(f"no hosts can be made from namespaces here: {reason}")
    print("milliseconds of a step's actions; two hosts, a rank on each\n")
    print("| schedule | delay | measured | simulated | measured / simulated | delays in it | simulated |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for schedule in arguments.schedules.split(","):
        base = base_simulated = None
        for delay in map(float, arguments.delays.split(",")):
            found = measure(arguments, schedule, delay)
            base = base or found
            simulated = simulated_ms(arguments, schedule, base, found["one_way_ms"])
            base_simulated = base_simulated or simulated
            row = f"| {schedule} | {delay:g} | {found['actions_ms']:.1f} | {simulated:.1f} | " \
                  f"{found['actions_ms'] / simulated:.2f} |"
            grown = [(now - before) / delay for now, before in ((found["actions_ms"], base["actions_ms"]),
                                                                (simulated, base_simulated))] if delay else []
            print(row, *(f"{times:.1f} |" for times in grown), *([] if delay else ["| |"]), flush=True)


if __name__ == "__main__":
    main()
