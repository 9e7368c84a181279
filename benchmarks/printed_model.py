"""Trains the layer as the text prints it, as the authors' runs have it, and what is in between.

The text has dot products in the decoder and maps without a bias (eq:l2-trf-updates), and tasks of
random weights and scales; the authors' runs have Euclidean scores, biases, and equal weights and
scales. Each setting is trained with the same seeds, and then takes 20 steps on the same 320 new
tasks of the runs' kind, as in tab:mix-res (normal mixtures). Takes three minutes on an H200 and
two hours on two cores. The record is written after each setting, so that an interrupted run keeps
the finished ones.
"""

import argparse
from dataclasses import replace
from typing import Any

import torch
from provenance import provenance, save

from lloydformer.learning import Run, Settings, Tasks, compare, train

PRINTED = Settings(decoder="dot", bias=False)
SETTINGS = {
    "as the text prints it": PRINTED,
    "as the authors' runs": Settings(),
    "dot products, with a bias": replace(PRINTED, bias=True),
    "Euclidean scores, without a bias": Settings(bias=False),
    "as the text prints it, rate 0.001": replace(PRINTED, learning_rate=0.001),
    "as the text prints it, its tasks": replace(
        PRINTED, tasks=Tasks(weights="random", scales="random")
    ),
}
TEST_SEED = 1  # that of the scores on cards


def measure(settings: Settings, seeds: int, device: str) -> dict[str, Any]:
    trained = train(settings, [Run(seed) for seed in range(seeds)], device=device)
    weights = trained.weights.to(device)
    found = compare(settings.layer, weights, Tasks(), seed=TEST_SEED, n_tasks=settings.n_validation)
    return {
        "relative_objective": [round(value, 4) for value in trained.history[-1].relative],
        "lloyd": round(float(found.lloyd[0, -1]), 4),
        "transformer": [round(value, 4) for value in found.transformer[:, -1].tolist()],
        "seconds": round(trained.seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=10_000, help="fewer only try the script")
    parser.add_argument("--validation", type=int, default=320)
    options = parser.parse_args()
    rows: dict[str, Any] = {}
    for name, settings in SETTINGS.items():
        shorter = replace(settings, n_steps=options.steps, n_validation=options.validation)
        rows[name] = measure(shorter, options.seeds, options.device)
        print(name, rows[name], flush=True)
        record = {**provenance(), "seeds": options.seeds, "device": options.device, "rows": rows}
        save("printed_model", record)


if __name__ == "__main__":
    main()
