"""Goes on behind scripts/demo as a new user would, and writes the page with the time and output of each step.

first_minutes.py DEMO_LOG DEMO_SECONDS [FILE]    called by scripts/first_minutes

Every command is run as it is shown. A step that ends with another code than it should ends the page and the script.
"""

import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TRY = ROOT / "runs" / "first_minutes"

OWN_MODEL = """\
import torch
from torch import nn
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
torch.jit.script(net).save("mine.pt")
"""

BROKEN_PLAN = """\
[model]
file = "mine.pt"
[data]
kind = "synthetc"
samples = 512
[data.fields]
input = "float32[16]"
label = "int64[] < 4"
[loss]
kind = "cross_entropy"
target = "lable"
[pipeline]
num_stages = 2
num_microbatches = 3
schedule_type = "1f1b"
[train]
steps = 20
global_batchsize = 32
"""

# What a reader of the errors types, in the order of the errors.
MENDS = [
    ('kind = "synthetc"', 'kind = "synthetic"'),
    ('schedule_type = "1f1b"', 'schedule_type = "1F1B"'),
    ("global_batchsize", "global_batch_size"),
    ("num_microbatches = 3", "num_microbatches = 4"),
    ('target = "lable"', 'target = "label"'),
]


class Page:
    """Markdown, written anew behind every step, so that a broken one leaves what came before."""

    def __init__(self, file: pathlib.Path) -> None:
        self.file = file
        self.text = ""

    def say(self, text: str) -> None:
        self.text += text + "\n\n"
        self.file.write_text(self.text)

    def show(self, kind: str, text: str) -> None:
        self.say(f"```{kind}\n{text.rstrip()}\n```")

    def tell(self, command: str, output: str, seconds: float, lines: int) -> None:
        """A command, the last lines of what it said, and how long it took."""
        said = short(output).rstrip().splitlines()
        left_out = [f"... {len(said) - lines} lines"] if len(said) > lines else []
        self.show("", "\n".join([f"$ {short(command)}", *left_out, *said[-lines:]]))
        self.say(f"{duration(seconds)}.")

    def run(self, command: str, *, lines: int = 12, codes: tuple[int, ...] = (0,), folder: pathlib.Path = ROOT) -> str:
        """Runs a line of shell; shows it, its time and the last lines of what it says."""
        print(f"first_minutes: {command}", flush=True)
        begin = time.monotonic()
        done = subprocess.run(["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, text=True, errors="replace")  # fmt: skip
        seconds = time.monotonic() - begin
        self.tell(command, done.stdout, seconds, lines)
        if done.returncode:
            self.say(f"It ends with exit code {done.returncode}.")
        if done.returncode not in codes:
            sys.exit(f"first_minutes: '{command}' ended with {done.returncode} (expected {codes}):\n{done.stdout}")
        return done.stdout


def short(text: str) -> str:
    return text.replace(str(ROOT), "~/vpp").replace(str(pathlib.Path.home()), "~")


def duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def machine() -> str:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") / 2**30
    system = re.search(r'PRETTY_NAME="(.*)"', pathlib.Path("/etc/os-release").read_text())
    name = system[1] if system else platform.system()
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    return f"{name}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB of memory, as {user}"


def own_model(page: Page) -> None:
    page.say("## A model of your own\n\nFive lines of Python export it (`export.py`):")
    page.show("python", OWN_MODEL)
    (TRY / "export.py").write_text(OWN_MODEL)
    python = subprocess.run(["bash", "-c", "source scripts/paths.sh; echo $vpp_python"], cwd=ROOT, capture_output=True,
                            text=True, check=True).stdout.strip()  # fmt: skip
    page.run(f"{python} export.py", folder=TRY)
    page.say("`vpp init own-model` reads the inputs of the file and writes a plan with data of that shape:")
    vpp = ROOT / "build" / "vpp"
    page.run(f"{vpp} init own-model mine --model mine.pt", folder=TRY, lines=30)
    page.run(f"{vpp} run mine/plan.toml", folder=TRY)


def broken_plan(page: Page) -> None:
    page.say("## A plan with mistakes\n\nWritten by hand, with five of them:")
    plan = TRY / "broken.toml"
    plan.write_text(BROKEN_PLAN)
    page.show("toml", BROKEN_PLAN)
    vpp = ROOT / "build" / "vpp"
    mended = BROKEN_PLAN
    rest = list(MENDS)
    while rest:
        said = page.run(f"{vpp} inspect broken.toml", codes=(65, 78), folder=TRY, lines=60)
        named = [mend for mend in rest if mend[0].split(" = ")[0] in said]
        if not named:
            sys.exit("first_minutes: the errors name none of the mistakes that are left:\n" + said)
        for wrong, right in named:
            mended = mended.replace(wrong, right)
            rest.remove((wrong, right))
        page.say("The errors say what to write: " + ", ".join(f"`{right}`" for _, right in named) + ".")
        plan.write_text(mended)
    page.run(f"{vpp} run broken.toml", folder=TRY)


def main() -> None:
    log, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    shutil.rmtree(TRY, ignore_errors=True)
    TRY.mkdir(parents=True)
    page = Page(pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else ROOT / "FIRST_MINUTES.md")
    page.say("# The first minutes with vpp")
    page.say(f"Written by `scripts/first_minutes`, which ran every line of it: {machine()}.")
    page.say(
        "## From nothing to a trained model\n\n"
        "One command installs what is missing, compiles, exports a small GPT and trains it on four ranks:"
    )
    page.tell("scripts/demo", log.read_text(errors="replace"), seconds, 16)
    page.say("## A plan to go on from")
    page.run("build/vpp init gpt-tiny runs/first_minutes/gpt-tiny", lines=30)
    page.run("build/vpp inspect runs/first_minutes/gpt-tiny/plan.toml", lines=70)
    page.run("build/vpp run runs/first_minutes/gpt-tiny/plan.toml", lines=24)
    own_model(page)
    broken_plan(page)
    print(f"first_minutes: wrote {page.file}")


if __name__ == "__main__":
    main()
