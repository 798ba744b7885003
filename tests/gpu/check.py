"""What a machine with a card can show of vpp, in one table.

check.py BUILD [--only ROW ...] [--device cpu] [--seconds N] [--total N] [--at-once N] [--log FILE]

BUILD is a build folder with the CUDA parts. Rows of exactness come first, several at once, then alone those that fill
a card or measure time. Ends with 0 when every row holds, 1 when one does not, is skipped or does not run, 77 without a
card. What the rows said goes to FILE (BUILD/gpu-check.log). `--device cpu` runs them on the CPU, which shows that they
run, and skips those that need a card.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import logging
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench"))
import models  # noqa: E402
SKIPPED = 77
MPIRUN = ["mpirun", "--oversubscribe", "-q", "-np"]
# Beside its own thread a rank has autograd's for the card, the transport's and NCCL's: it is not bound to one core.
MPI_VARIABLES = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                 "OMPI_MCA_hwloc_base_binding_policy": "none"}
MODELS = ("mlp", "gpt", "bn_cnn")
REFERENCES = ("mlp.scripted*", "gpt*.scripted*", "bn_cnn*.scripted*", "dropout.scripted*", "moe.traced*")
UNIT_TESTS = {"device": "*", "graph": "Executable.ANumberThatATraceWroteDown*", "stage": "*"}
OWN_HOST = ROOT / "tests/gpu/own_host.sh"
COMPUTING = ("F", "B", "I", "W")
CORES_OF_A_ROW = 5


@dataclasses.dataclass
class Limits:
    seconds: float = 1800  # of a command
    end: float = float("inf")  # of the table, as time.monotonic() has it

    def left(self) -> float:
        """Seconds that a command may take."""
        return min(self.seconds, self.end - time.monotonic())


limits = Limits()
running: set[subprocess.Popen] = set()


class Row(Exception):
    """A row that does not hold, or is skipped: why."""


def end_session(session: int) -> None:
    """Ends what is left of it, ranks too, which have groups of their own: nothing stays on a card."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(int(process.name)) == session:
                os.kill(int(process.name), signal.SIGKILL)


def words_of(child: subprocess.Popen) -> tuple[str, str, bool]:
    """What it prints until it ends, or is ended, and whether it had to be."""
    seconds = limits.left()
    try:
        return *child.communicate(timeout=seconds), False
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGTERM)  # mpirun ends its ranks
    late = f"no end in {seconds:.0f} s"
    try:
        said, complained = child.communicate(timeout=20)
        return said, f"{complained}\n{late}", True
    except subprocess.TimeoutExpired:
        end_session(child.pid)
        child.wait()
        return "", late, True


def run(command: list, **variables: str) -> str:
    """What a command prints; a row that fails with its last lines."""
    environment = os.environ | MPI_VARIABLES | variables
    command = [str(word) for word in command]
    started = time.monotonic()
    if limits.left() <= 0:
        raise Row("its time was over before it ran " + shlex.join(command))
    child = subprocess.Popen(command, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment, start_new_session=True)
    running.add(child)
    said, complained, is_late = words_of(child)
    running.remove(child)
    logging.info("%s\nended with %d in %.1f s\n%s%s\n", shlex.join(command), child.returncode,
                 time.monotonic() - started, said, complained)
    if child.returncode == SKIPPED:
        raise Row(said.strip())
    if child.returncode != 0 or is_late:
        lines = (said + complained).strip().splitlines()
        raise Row("failed: " + " / ".join(lines[-4:]))
    return said


def num_passed(text: str) -> int:
    return int(re.search(r"PASSED.*?(\d+) tests?", text)[1])


def unit_test(build: pathlib.Path, device: str, module: str, tests: str) -> int:
    """How many tests passed."""
    return num_passed(run([build / f"tests/unit/{module}/vpp_{module}_test", "--gtest_brief=1",
                           f"--gtest_filter={tests}"], VPP_TEST_DEVICE=device))


def stages(build: pathlib.Path, device: str) -> str:
    """Recordings, and memory of a card, which some of them fill: nothing else may run there."""
    return f"{sum(unit_test(build, device, module, tests) for module, tests in UNIT_TESTS.items())} tests"


def engine(build: pathlib.Path, device: str) -> str:
    """Steps, saves and resumes on the card, with the bits of one device there."""
    return f"{unit_test(build, device, 'engine', '-*Full.*')} tests"


def reference(build: pathlib.Path, device: str) -> str:
    """vpp, in one stage and cut, against eager Python on that card, bit for bit."""
    text = run([sys.executable, "-B", "-W", "ignore", ROOT / "tests/reference/check.py", "--vpp", build / "vpp",
                "--record", build / "tests/reference/vpp_record", "--quick", "--device", device, "--only", *REFERENCES])
    return text.strip().splitlines()[-1]


def verified(build: pathlib.Path, device: str) -> str:
    """Every schedule on 4 ranks that share the card, by MPI, against one device; two of four steps are replayed."""
    text = run([sys.executable, "-B", ROOT / "tests/multi/verify_matrix.py", "--pairwise", "--steps", "4",
                "--device", device, *MODELS],
               VPP_BINARY=str(build / "vpp"), VPP_MPIRUN="mpirun")
    return text.strip().splitlines()[-1]


def skip_on_cpu(device: str) -> None:
    if device == "cpu":
        raise Row("skipped: NCCL moves memory of cards")


def on_own_hosts(program: pathlib.Path, device: str) -> dict[str, str]:
    """What OWN_HOST needs to run the program, so that ranks that share a card may send by NCCL."""
    return {"VPP_PROGRAM": str(program), "VPP_CARDS": str(torch.cuda.device_count() if device == "cuda" else 1)}


def verified_nccl(build: pathlib.Path, device: str) -> str:
    """Every schedule by NCCL; where there are too few cards, by NCCL's sockets between ranks that share one. The first
    steps take memory, and go through the host: a layout in which all did so does not hold. BatchNorm of channels that
    lie last has kernels that want many multiprocessors at once, of which waiting messages hold some."""
    skip_on_cpu(device)
    said = []
    for precision, name in (("fp32", "gpt_tied"), ("bf16", "bn_cnn_channels_last")):
        text = run([sys.executable, "-B", ROOT / "tests/multi/verify_matrix.py", "--once", "--steps", "10", "--cuts",
                    "1", "--device", device, "--transport", "nccl", "--precision", precision, name],
                   VPP_BINARY=str(OWN_HOST), VPP_MPIRUN="mpirun", **on_own_hosts(build / "vpp", device))
        said.append(f"{precision}: {text.strip().splitlines()[-1]}")
    return "; ".join(said)


def nccl_jobs(build: pathlib.Path, device: str) -> str:
    """Jobs whose ranks send by NCCL: replicas, a resume, and a rank that fails, stands still or dies."""
    skip_on_cpu(device)
    run([sys.executable, "-B", ROOT / "tests/gpu/jobs_test.py"], VPP_BINARY=str(OWN_HOST), VPP_MPIRUN="mpirun",
        **on_own_hosts(build / "vpp", device))
    return "replicas and a resume have the bits; jobs end in which a rank fails, stands still or dies"


def verified_mixed(build: pathlib.Path, device: str) -> str:
    """Mixed precision the same way: what was planned without the card holds on it."""
    said = []
    for precision, names in (("bf16", ("gpt", "bn_cnn_channels_last")), ("fp16", ("mlp", "gpt"))):
        text = run([sys.executable, "-B", ROOT / "tests/multi/verify_matrix.py", "--pairwise", "--steps", "4",
                    "--device", device, "--precision", precision, "--cuts", "1", *names],
                   VPP_BINARY=str(build / "vpp"), VPP_MPIRUN="mpirun")
        said.append(f"{precision}: {text.strip().splitlines()[-1]}")
    return "; ".join(said)


def one_stage(build: pathlib.Path, device: str, *options: str) -> str:
    """A step of one stage against eager Python with the same exact kernels, taking turns; and without them."""
    text = run([sys.executable, ROOT / "tests/bench/one_stage.py", build / "vpp", "--device", device, "--rounds", "3",
                *options])
    ratios = {side: (number, spread) for side, number, spread in
              re.findall(r"^ratio to (.+): ([0-9.]+) \((.*)\)$", text, re.MULTILINE)}
    _, spread = list(ratios.values())[-1]
    least = float(spread.split()[0])  # vpp is slower where it is so in every round: one alone may be noise
    said = [f"ratio {ratio} to {name} ({spread})" for name, (ratio, spread) in ratios.items()]
    return held(least, 1.00, "; ".join(said))


def recomputed(build: pathlib.Path, device: str) -> str:
    """The same where both run each block's ops again in backward."""
    return one_stage(build, device, "--recompute")


def held(ratio: float, most: float, text: str) -> str:
    if ratio > most:
        raise Row(f"{text}, wanted at most {most:.2f}")
    return text


def raw_ratio(text: str) -> str:
    """Of the largest message, what a transport takes over what the raw calls take."""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    parts = [f"{row['bytes']} B {row['ratio']:.2f}" for row in rows]
    return held(rows[-1]["ratio"], 1.10, "ratios " + ", ".join(parts))


def mpi_transport(build: pathlib.Path, device: str) -> str:
    """Messages through the host's memory against MPI's own calls."""
    return raw_ratio(run([*MPIRUN, "2", build / "tests/multi/vpp_raw_transport_bench"]))


def staged_messages(build: pathlib.Path, device: str) -> str:
    """Messages of a card that two ranks share, through pinned memory, against CUDA's copies and MPI's own calls."""
    return raw_ratio(run([*MPIRUN, "2", build / "tests/gpu/vpp_link_check", "mpi"]))


def card_memory(build: pathlib.Path, device: str) -> str:
    """When memory that MPI moves is read, filled and given again, with a compute stream that is held back."""
    text = run([build / "tests/gpu/vpp_card_memory_test", "--gtest_brief=1"])
    if "SKIPPED" in text:
        raise Row("skipped: there is no card")
    return f"{num_passed(text)} tests"


def nccl_links(build: pathlib.Path, device: str) -> str:
    """What links send when, and when memory is given again, with compute streams that are held back."""
    text = run([*MPIRUN, "2", OWN_HOST, "--gtest_brief=1"], **on_own_hosts(build / "tests/gpu/vpp_link_test", device))
    if "SKIPPED" in text:
        raise Row("skipped: NCCL moves memory of cards")
    return f"{num_passed(text)} tests"


def nccl_transport(build: pathlib.Path, device: str) -> str:
    """Messages from card to card, or between ranks that share one, against NCCL's own calls; contents compared."""
    return raw_ratio(run([*MPIRUN, "2", OWN_HOST, "nccl", "3"],
                         **on_own_hosts(build / "tests/gpu/vpp_link_check", device)))


def traced(build: pathlib.Path, device: str) -> str:
    """A profiled step of two ranks: when the card did what their actions gave it."""
    with tempfile.TemporaryDirectory() as folder:
        models.export(models.SMALL, pathlib.Path(folder))
        plan = pathlib.Path(folder, "plan.toml")
        plan.write_text(models.plan(models.SMALL, 2, "1F1B", 1))
        run([*MPIRUN, "2", build / "vpp", "train", plan, "--profile", "5..5", "--set", f"mesh.device={device}",
             "--set", f"run.dir={folder}/run"])
        events = json.loads(pathlib.Path(folder, "run/profile/trace-step5.json").read_text())["traceEvents"]
    computing = [event for event in events if event.get("cat") in COMPUTING]
    on_card = [event for event in events if event.get("cat") == "card" and event["name"].split()[0] in COMPUTING]
    expected = len(computing) if device == "cuda" else 0
    if len(on_card) != expected:
        raise Row(f"{len(on_card)} of {expected} computing actions have a time of the card")
    handing_out, doing = (sum(event["dur"] for event in some) / 1e3 for some in (computing, on_card))
    return f"{len(on_card)} actions on the card, {doing:.1f} ms; handing them out took {handing_out:.1f} ms"


# What only cards can show comes first, then what takes long.
NCCL = {"links": nccl_links, "jobs": nccl_jobs, "verify NCCL": verified_nccl}
CHECKS = {"memory": card_memory, "trace": traced, "reference": reference, "mixed": verified_mixed,
          "verify": verified, "engine": engine}
ALONE = {"stages": stages, "MPI": mpi_transport, "staged": staged_messages, "NCCL": nccl_transport,
         "one stage": one_stage, "recomputed": recomputed}
ROWS = NCCL | CHECKS | ALONE


def show(name: str, build: pathlib.Path, device: str) -> bool:
    """Runs a row and prints it; whether it holds. What a row cannot read is a problem of that row alone."""
    started = time.monotonic()
    holds = True
    try:
        result = "ok       " + ROWS[name](build, device)
    except Row as row:
        is_skipped = str(row).startswith("skipped")
        holds = is_skipped and device == "cpu"
        result = "skipped  " + str(row)[9:] if is_skipped else "PROBLEM  " + str(row)
    except Exception as problem:
        logging.exception(name)
        holds = False
        result = f"PROBLEM  {problem!r}"
    print(f"{name:<11} {result} ({time.monotonic() - started:.0f} s)", flush=True)
    return holds


def show_all(names: list[str], at_once: int, build: pathlib.Path, device: str) -> bool:
    """Whether all hold. Who interrupts it ends their programs."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        rows = [pool.submit(show, name, build, device) for name in names]
        try:
            return all([row.result() for row in rows])
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in list(running):
                end_session(child.pid)
            raise


def interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seconds", type=int, default=limits.seconds, help="of a command (%(default)s)")
    parser.add_argument("--total", type=int, help="seconds of all rows; those behind do not run")
    parser.add_argument("--log", type=pathlib.Path,
                        help="what the rows said (BUILD/gpu-check.log, or in $TMPDIR where BUILD may not be written)")
    parser.add_argument("--at-once", type=int, default=max(1, len(os.sched_getaffinity(0)) // CORES_OF_A_ROW),
                        help="of the rows that need not run alone (%(default)s: as many as there are cores for)")
    arguments = parser.parse_args()
    limits.seconds = arguments.seconds
    if arguments.total:
        limits.end = time.monotonic() + arguments.total
    signal.signal(signal.SIGTERM, interrupt)  # whoever ends it ends its programs too
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("gpu-check: there is no card that CUDA gives this process; look at nvidia-smi and CUDA_VISIBLE_DEVICES")
        return SKIPPED
    if arguments.device == "cuda":
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        print(f"cards: {', '.join(names)}; LibTorch {torch.__version__}, CUDA {torch.version.cuda}", flush=True)
    build = arguments.build.resolve()
    folder = build if os.access(build, os.W_OK) else pathlib.Path(tempfile.gettempdir())
    logging.basicConfig(filename=arguments.log or folder / "gpu-check.log", filemode="w", format="%(message)s",
                        level=logging.INFO)
    wanted = arguments.only or list(ROWS)
    all_hold = True
    # Ranks that wait for each other's messages hold multiprocessors: one row at a time has ranks that share a card so.
    for some, at_once in ((NCCL, 1), (CHECKS, max(1, arguments.at_once)), (ALONE, 1)):
        all_hold &= show_all([name for name in wanted if name in some], at_once, build, arguments.device)
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
