"""Figures (h) and (i): saves and resumes against the bare disk, and the reading of data."""

import datetime
import os
import pathlib
import shutil
import statistics
import time
from collections.abc import Iterator

import torch
from data_rates import PLAN, First, load_seconds, make_files, sample_bytes
from models import LARGE, plan
from sides import Vpp
from table import Figure, compare

BLOCK = bytes(4 << 20)
KINDS = ("tokens, 1024", "npy, float32", "npy, crop and flip")
MEGABYTES, BATCH = 32, 512


def write_seconds(path: pathlib.Path, size: int) -> float:
    begin = time.perf_counter()
    with open(path, "wb", buffering=0) as file:
        for offset in range(0, size, len(BLOCK)):
            file.write(BLOCK[:size - offset])
        os.fsync(file.fileno())
    seconds = time.perf_counter() - begin
    path.unlink()
    return seconds


def read_seconds(files: list[pathlib.Path]) -> float:
    begin = time.perf_counter()
    for path in files:
        with open(path, "rb", buffering=0) as file:
            while file.read(len(BLOCK)):
                pass
    return time.perf_counter() - begin


def resume_seconds(log: pathlib.Path) -> float:
    """Of the last run in a log."""
    begin, seconds = None, 0.0
    for line in log.read_text().splitlines():
        now = datetime.datetime.fromisoformat(line.split(" ")[0])
        if "parameters in" in line:
            begin = now
        if "resumed after step" in line:
            seconds = (now - begin).total_seconds()
    return seconds


def saves(vpp: Vpp, rounds: int) -> Iterator[Figure]:
    """Rates of the large model's state on one rank: weights and both moments. Raw: as many bytes in one file, synced;
    and the files of the checkpoint, read. A resume is what the log has between its first line and "resumed"."""
    write, read = ([], []), ([], [])
    def text(steps: int) -> str:
        return plan(LARGE, 1, "1F1B", 1, steps=steps, checkpoint="every = 1\nbackground = false")

    for _ in range(rounds):
        first = vpp.train(text(1), 1)
        save = first.of_kind("save")[0]
        size = save["size_bytes"]
        write[0].append(size / 1e6 / save["seconds"])
        write[1].append(size / 1e6 / write_seconds(vpp.folder / "raw", size))
        files = sorted((first.folder / "checkpoints").glob("step-*/*"))
        read[1].append(size / 1e6 / read_seconds(files))
        vpp.train(text(2), 1, keep=True)
        read[0].append(size / 1e6 / resume_seconds(first.folder / "log.txt"))
    yield compare("h", "save over raw disk", write, "MB/s", model=LARGE.name)
    yield compare("h", "resume over raw reading", read, "MB/s", model=LARGE.name)


def rates(vpp: Vpp, rounds: int) -> Iterator[Figure]:
    """MB/s of what the model gets."""
    torch.jit.script(First()).save(str(vpp.folder / "first.pt"))
    files = make_files(vpp.folder, MEGABYTES << 20)
    for kind in KINDS:
        field, data = files[kind]
        path = vpp.folder / "data.toml"
        path.write_text(PLAN.format(model=vpp.folder / "first", field=field, data="kind = " + data, batch=BATCH,
                                    folder=vpp.folder, name="data"))
        seconds = []
        for _ in range(rounds):
            shutil.rmtree(vpp.folder / "run-data", ignore_errors=True)
            seconds.append(load_seconds(vpp.binary, path, vpp.folder / "run-data"))
        megabytes = BATCH * sample_bytes(field, kind) / 1e6
        yield Figure("i", f"reading {kind}", [megabytes / s for s in seconds], unit="MB/s",
                     ours=f"{BATCH / statistics.median(seconds):,.0f} samples/s")


def measure(vpp: Vpp, rounds: int, keys: str) -> Iterator[Figure]:
    if "h" in keys:
        yield from saves(vpp, rounds)
    if "i" in keys:
        yield from rates(vpp, rounds)
