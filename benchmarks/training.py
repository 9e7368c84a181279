"""Steps of training per second beside the plain loop, on this machine: d 32, k 10, n 512, batch 32.

The plain loop draws its tasks one by one, runs eagerly, and takes scores from `torch.cdist`, as
one would write it first. Both take turns, so that what else the machine does meets both. On CUDA
also: one whole run with its evaluations, and many runs together.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable

import torch
from provenance import provenance, save
from torch import Tensor, nn

from lloydformer.learning import Run, Settings, train
from lloydformer.learning.trainer import Trainer

D, K, N, BATCH, PAPERS_RUNS = 32, 10, 512, 32, 260


class PlainHead(nn.Module):
    """Scores from `torch.cdist`, soft-max, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D + K, D + K) for _ in range(3))

    def forward(self, tokens: Tensor, sources: Tensor) -> Tensor:
        scores = -torch.cdist(self.query(tokens), self.key(sources)).square()
        weights = (scores / math.sqrt(D + K)).softmax(dim=-1)
        return nn.functional.dropout(weights, 0.01, self.training) @ self.value(sources)


class PlainLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(PlainHead() for _ in range(4))

    def forward(self, points: Tensor, centers: Tensor) -> Tensor:
        one, two, three, four = self.heads
        x = torch.cat([points, points.new_zeros(*points.shape[:2], K)], dim=-1)
        names = torch.eye(K, device=points.device).expand(len(points), K, K)
        c = torch.cat([centers, names], dim=-1)
        x = x + two(x, x) + one(x, c)
        return (c + four(c, c) + three(c, x))[..., :D]


def plain_task(device: str) -> tuple[Tensor, Tensor]:
    """One task from torch's own mixture."""
    parts = torch.distributions.Independent(
        torch.distributions.Normal(
            torch.rand(K, D, device=device), torch.full((K, D), 0.1, device=device)
        ),
        1,
    )
    equal = torch.distributions.Categorical(torch.ones(K, device=device))
    points = torch.distributions.MixtureSameFamily(equal, parts).sample((N,))
    low, high = points.amin(dim=0), points.amax(dim=0)
    points = (points - low) / (high - low)
    return points, points[torch.randperm(N, device=device)[:K]]


def plain_loop(device: str) -> Callable[[], None]:
    layer = PlainLayer().to(device)
    adam = torch.optim.Adam(layer.parameters(), lr=0.01)

    def step() -> None:
        tasks = [plain_task(device) for _ in range(BATCH)]
        points, centers = (torch.stack(part) for part in zip(*tasks, strict=True))
        squares = torch.cdist(points, layer(points, centers)).square()
        loss = ((-squares / 0.1).softmax(dim=-1) * squares).sum(dim=(1, 2)).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()

    return step


def seconds(step: Callable[[], None], count: int, device: str) -> float:
    _wait(device)
    began = time.perf_counter()
    for _ in range(count):
        step()
    _wait(device)
    return (time.perf_counter() - began) / count


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def beside_the_plain_loop(device: str, rounds: int, count: int) -> dict[str, float]:
    trainer = Trainer(Settings(), [Run(0)], device)
    trainer.capture()
    ours = trainer.run_step
    plain = plain_loop(device)
    seconds(ours, 2, device), seconds(plain, 2, device)  # warm-up
    pairs = [(seconds(ours, count, device), seconds(plain, count, device)) for _ in range(rounds)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratios = sorted(p / m for m, p in pairs)
    return {
        "lloydformer_steps_per_s": 1 / mine,
        "plain_steps_per_s": 1 / theirs,
        "median_ratio": statistics.median(ratios),
        "least_ratio": ratios[0],
        "greatest_ratio": ratios[-1],
    }


def many_runs(count: int, steps: int) -> dict[str, float]:
    """Seconds a run: a shorter training, reckoned up to 10,000 steps and 200 evaluations."""
    trained = train(Settings(n_steps=steps), [Run(seed) for seed in range(count)], device="cuda")
    each = trained.seconds / count * 10_000 / steps
    return {
        "n_runs": count,
        "steps": steps,
        "s_a_run": each,
        "minutes_for_the_papers_runs": each * PAPERS_RUNS / 60,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="of a round")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    result = {
        "device": device,
        "threads": torch.get_num_threads(),
        **beside_the_plain_loop(device, options.rounds, options.steps),
    }
    if device == "cuda":
        result["gpu"] = torch.cuda.get_device_name()
        result["one_run_s"] = train(Settings(), [Run(0)], device="cuda").seconds
        result["together"] = [many_runs(count, 1000) for count in (8, 32, 64)]
    print(result)
    print(save(f"training-{device}", {**provenance(), "result": result}))


if __name__ == "__main__":
    main()
