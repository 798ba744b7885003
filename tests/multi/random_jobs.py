"""Models drawn at random (tests/cuts/random_models.py), trained in one piece and in three, bit for bit.

    random_jobs.py --jobs N [--first SEED] [--steps N] [--keep FOLDER] [--self-test]

The one piece has one stage. The other job stops twice and goes on, each time with another number of stages, schedule,
split, accumulation, recomputation and ZeRO-1. What both must have in common: every step's losses, gradient norm and
learning rate, and every evaluation. A job that fails stays under FOLDER/SEED. --self-test demands that another learning
rate of the pieces is noticed. On cards a piece replays recorded ops from its third step on: --steps 18 has most do.
"""

import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("support", "cuts")]
import random_models  # noqa: E402
from vpp_process import ENVIRONMENT, Case  # noqa: E402

MICROBATCHES = 4
ONE_CHUNK = ("GPIPE", "1F1B", "EAGER_1F1B", "ZERO_BUBBLE_H1", "ZERO_BUBBLE_GREEDY")
TWO_CHUNKS = ("INTERLEAVED_1F1B", "LOOPED_BFS", "INTERLEAVED_ZERO_BUBBLE", "ZERO_BUBBLE_V", "V_HALF", "V_MIN")
MOST_RANKS = 4


class Job:
    """One model, and settings that all its pieces have."""

    def __init__(self, folder: pathlib.Path, seed: int, steps: int):
        self.folder, self.random, self.steps = folder, random.Random(seed), steps
        random_models.write_model(folder, seed)
        plan = folder / "plan.toml"
        files = f'[data.val]\nx = "{folder}/x.npy"\ntokens = "{folder}/tokens.npy"\n'
        source = (folder / "model.py").read_text()
        self.submodules = sorted({name for name in re.findall(r"self\.(\w+) = torch\.nn\.[A-Z]", source)
                                  if f"self.{name}(" in source})
        plan.write_text(plan.read_text().replace("[pipeline]", files + "[pipeline]"))
        choice = self.random.choice
        self.replicas = choice([1, 1, 2])
        samples = self.replicas * MICROBATCHES * random_models.SAMPLES_PER_MICROBATCH
        self.common = [f"mesh.dp={self.replicas}", f"train.global_batch_size={samples}", f"train.seed={seed}",
                       "train.eval_every=2", f"optimizer.kind={choice(['adamw', 'sgd', 'adam'])}",
                       f"optimizer.clip_norm={choice([0, 0.7])}"]
        if self.random.random() < 0.3:
            self.common.append("pipeline.deferred_batch_norm=true")
        self.precision = choice(["fp32", "fp32", "bf16", "fp16"])

    def train(self, run: str, stages: int, steps: int, settings: list[str]) -> subprocess.CompletedProcess:
        settings = [*self.common, f"train.precision={self.precision}", f"run.dir={run}",
                    f"pipeline.num_stages={stages}", f"train.steps={steps}", *settings]
        words = ["train", "plan.toml", *(word for setting in settings for word in ("--set", setting))]
        done = subprocess.run(Case.command(words, stages * self.replicas), cwd=self.folder, env=ENVIRONMENT, text=True,
                              capture_output=True, timeout=300)
        with (self.folder / "log").open("a") as log:
            log.write(f"{' '.join(words)} -> {done.returncode}\n{done.stderr}")
        return done

    def whole(self) -> subprocess.CompletedProcess:
        settings = [f"pipeline.num_microbatches={MICROBATCHES}"]
        done = self.train("whole", 1, self.steps, settings)
        if done.returncode == 65 and self.precision != "fp32":  # some of the drawn ops take no mixed types
            self.precision = "fp32"
            done = self.train("whole", 1, self.steps, settings)
        return done

    def layout(self) -> tuple[int, list[str]]:
        """A number of stages, and settings that change no bit."""
        choice, chance = self.random.choice, self.random.random
        stages = self.random.randint(1, MOST_RANKS // self.replicas)
        method = choice(["FLOPS", "PARAMETERS", "UNIFORM"])
        settings = [f"pipeline.split_method={method}", f"pipeline.uniform_split_ops={str(method == 'UNIFORM').lower()}"]
        if stages > 1:
            schedule = choice(ONE_CHUNK + TWO_CHUNKS)
            chunks = 2 if schedule in TWO_CHUNKS else 1
            settings += [f"pipeline.schedule_type={schedule}", f"pipeline.virtual_chunks={chunks}"]
        runs = choice([1, 1, 2])
        settings += [f"train.accumulate={runs}", f"pipeline.num_microbatches={MICROBATCHES // runs}"]
        if chance() < 0.3:
            settings += self.recomputed()
        if self.replicas > 1 and chance() < 0.5:
            settings.append("mesh.zero1=true")
        return stages, settings

    def recomputed(self) -> list[str]:
        some = [name for name in self.submodules if self.random.random() < 0.5]
        if not some or self.random.random() < 0.5:
            return ["pipeline.recompute.what=stage"]
        return ["pipeline.recompute.what=modules", f"pipeline.recompute.modules={some}"]

    def piece(self, stop: int, spoil: list[str]) -> subprocess.CompletedProcess:
        """In another layout where the model has too few places to be cut at for the one that was drawn."""
        for _ in range(20):
            stages, settings = self.layout()
            done = self.train("pieces", stages, stop, settings + spoil)
            if "so it cannot be split into" not in done.stderr:
                break
        return done

    def pieces(self, spoil: list[str]) -> subprocess.CompletedProcess:
        for stop in [*sorted(self.random.sample(range(1, self.steps), 2)), self.steps]:
            done = self.piece(stop, spoil)
            if done.returncode != 0:
                break
        return done

    def lines(self, run: str) -> dict[tuple, list[str]]:
        """What steps and evaluations gave."""
        keys = {"step": ("loss", "microbatch_losses", "grad_norm", "lr"), "eval": ("loss",)}
        lines = map(json.loads, (self.folder / run / "metrics.jsonl").read_text().splitlines())
        return {(line["event"], line["step"]): [str(line[key]) for key in keys[line["event"]]]
                for line in lines if line["event"] in keys}


class Failed(Exception):
    """A job that did not come to its end."""


def differences(folder: pathlib.Path, seed: int, steps: int, spoil: list[str]) -> list[str]:
    """Between the one piece and the three; empty when all is well."""
    job = Job(folder, seed, steps)
    for done in (job.whole(), job.pieces(spoil)):
        if done.returncode != 0:
            raise Failed(f"ended with {done.returncode}: {done.stderr[-600:]}")
    whole, pieces = job.lines("whole"), job.lines("pieces")
    return [f"{event} {step}: {line}, in pieces {pieces.get((event, step))}"
            for (event, step), line in whole.items() if pieces.get((event, step)) != line]


def is_well(folder: pathlib.Path, seed: int, steps: int, spoil: list[str]) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        found = differences(folder, seed, steps, spoil)
    except Failed as failure:
        print(f"{folder}: {failure}", flush=True)
        return False
    if bool(found) != bool(spoil):
        print(f"{folder}:", *(found or [f"{spoil} was not noticed"]), sep="\n", flush=True)
        return False
    shutil.rmtree(folder)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--self-test", action="store_true", help="demand that another run is noticed")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "vpp_random_jobs")
    options = parser.parse_args()
    checks = [(seed, []) for seed in range(options.first, options.first + options.jobs)]
    if options.self_test:
        checks.append((options.first, ["optimizer.lr=0.0010001"]))
    failed = sum(not is_well(options.keep.resolve() / str(seed), seed, options.steps, spoil) for seed, spoil in checks)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.exit(main())
