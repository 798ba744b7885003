"""What a run folder holds, read without vpp: the tensors of its checkpoints as digests."""

import hashlib
import json
import pathlib


def checkpoints(run: pathlib.Path) -> list[pathlib.Path]:
    """Committed ones, oldest first."""
    return sorted(path for path in (run / "checkpoints").glob("step-*") if not path.name.endswith(".old"))


def tensors(checkpoint: pathlib.Path) -> dict[str, str]:
    """Digests by name over all shards; the same for every layout."""
    found = {}
    for shard in sorted(checkpoint.glob("*.safetensors")):
        data = shard.read_bytes()
        begin = 8 + int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:begin]).items():
            if name == "__metadata__":
                continue
            first, last = entry["data_offsets"]
            value = hashlib.sha256(data[begin + first:begin + last]).hexdigest()
            found[name] = f"{entry['dtype']} {entry['shape']} {value}"
    return found


def final(run: pathlib.Path) -> dict[str, str]:
    """Of the newest checkpoint."""
    return tensors(checkpoints(run)[-1])


def files_of(run: pathlib.Path) -> dict[str, str]:
    """Digests of all its files by path, but of those that any command may write to that looks at it."""
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in run.rglob("*") if path.is_file() and path.name not in ("log.txt", ".lock")}
