"""How the step of each schedule grows with the latency between two hosts, against the simulator: a rank on each of two
hosts made from namespaces (tests/support/namespaces.py). The simulator gets the times of the stages that were measured
without a delay, and half a round trip, which is measured too, as the cost of a message.

latency.py VPP [--steps N] [--microbatches N] [--delays 0,2,20] [--schedules A,B]     prints a table
"""

import argparse
import json
import os
import pathlib
import statistics
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
    """The timeline of the step of median duration, without the first two."""
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
                            "train", str(folder / "plan.toml"), "--profile", str(arguments.steps - 2),
                            *(word for setting in settings for word in ("--set", setting))],
                           env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=600)
            found = json.loads((network.hosts[0].folder / "run/profile/timeline.json").read_text())
            found["one_way_ms"] = network.round_trip_ms() / 2
            return found


def simulated_ms(arguments, schedule: str, without_delay: dict, one_way_ms: float) -> float:
    def mean_ms(stage: int, kind: str) -> float:
        """Of a microbatch; 0: the stage has no such action."""
        spent = [action["end_ms"] - action["begin_ms"] for action in without_delay["actions"]
                 if (action["stage"], action["kind"]) == (stage, kind)]
        return statistics.mean(spent) if spent else 0.0

    def cost(of_stage) -> str:
        return "/".join(f"{of_stage(stage):.6f}" for stage in range(without_delay["num_stages"]))

    def weight_ms(stage: int) -> float:
        return mean_ms(stage, "W") or max(0.0, mean_ms(stage, "B") - mean_ms(stage, "I"))

    costs = f"F={cost(lambda s: mean_ms(s, 'F'))},I={cost(lambda s: mean_ms(s, 'I'))},W={cost(weight_ms)}"
    done = subprocess.run([arguments.vpp, "schedule", "simulate", "--schedule", schedule, "--pp", "2", "--virtual",
                           str(SCHEDULES[schedule]), "--microbatches", str(arguments.microbatches), "--costs",
                           f"{costs},comm={one_way_ms:.6f}", "--json"], check=True, capture_output=True, text=True)
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
    print("milliseconds of a step; two hosts, a rank on each; in it: how many delays a step is longer by\n")
    print("| schedule | delay | measured | simulated | measured / simulated | delays in it | simulated in it |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for schedule in arguments.schedules.split(","):
        base = base_simulated = None
        for delay in map(float, arguments.delays.split(",")):
            found = measure(arguments, schedule, delay)
            base = base or found
            simulated = simulated_ms(arguments, schedule, base, found["one_way_ms"])
            base_simulated = base_simulated or simulated
            row = f"| {schedule} | {delay:g} | {found['duration_ms']:.1f} | {simulated:.1f} | " \
                  f"{found['duration_ms'] / simulated:.2f} |"
            grown = [(now - before) / delay for now, before in ((found["duration_ms"], base["duration_ms"]),
                                                                (simulated, base_simulated))] if delay else []
            print(row, *(f"{times:.1f} |" for times in grown), *([] if delay else ["| |"]), flush=True)


if __name__ == "__main__":
    main()
