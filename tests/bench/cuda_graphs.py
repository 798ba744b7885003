"""What CUDA graphs would gain: F and B of a scripted model, replayed from a graph, against the same handed out by op.

cuda_graphs.py [--model small large] [--rounds N] [--calls N]

Prints for each model the median of both and the ratio of replayed over handed out, and ends with 1 where the gradients
differ in a bit. Exact kernels, as vpp has them. One graph has both F and B of one microbatch, which a pipeline cannot
have (others come between them), so the ratio is the least that graphs could reach. 77 without a card.
"""

import argparse
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from exact_kernels import use_exact_kernels  # noqa: E402
import models  # noqa: E402
import torch  # noqa: E402

SKIPPED = 77
WARM_UP = 5  # calls before the capture: the JIT has specialized its graph then


class Step:
    """F and B of one microbatch of a model on the card."""

    def __init__(self, size: models.Size, folder: pathlib.Path) -> None:
        models.export(size, folder)
        self.model = torch.jit.load(str(folder / f"{size.name}.pt"), map_location="cuda").train()
        self.tokens, self.targets = (torch.randint(256, (size.samples, size.t), device="cuda") for _ in range(2))

    def by_op(self) -> None:
        self.model.zero_grad(set_to_none=True)
        self.model(self.tokens, self.targets).backward()

    def captured(self) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                self.by_op()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.by_op()
        return graph

    def gradient_bits(self) -> list[torch.Tensor]:
        return [parameter.grad.view(torch.int32).clone() for parameter in self.model.parameters()]


def median_ms(call: Callable[[], None], calls: int) -> float:
    times = []
    for _ in range(calls):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def compare(size: models.Size, rounds: int, calls: int) -> bool:
    """Prints a model's line; whether the gradients have the same bits."""
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        step = Step(size, pathlib.Path(folder))
    graph = step.captured()
    graph.replay()
    replayed_bits = step.gradient_bits()
    pairs = [(median_ms(step.by_op, calls), median_ms(graph.replay, calls)) for _ in range(rounds)]
    step.by_op()
    same = all(map(torch.equal, replayed_bits, step.gradient_bits()))
    by_op, replayed = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = [replayed / by_op for by_op, replayed in pairs]
    print(f"{size.name}: {by_op:.2f} ms by op, {replayed:.2f} ms replayed, ratio {statistics.median(ratios):.2f} "
          f"({min(ratios):.2f} to {max(ratios):.2f}), {'the same bits' if same else 'OTHER BITS'}")
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", choices=models.SIZES, default=["small", "large"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=30, help="of each side in a round")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: there is no card")
        return SKIPPED
    use_exact_kernels()
    same = [compare(models.SIZES[name], arguments.rounds, arguments.calls) for name in arguments.model]
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
