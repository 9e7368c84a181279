"""Training from constructed and from random weights: d 4, k 6, n 64, three seeds, on the CPU.

Prints the objective relative to a Lloyd step on 320 validation tasks at some steps, a row for each
start, and writes all evaluations to results/starts.json. Takes ten minutes on one core.
"""

import warnings

from provenance import provenance, save

import lloydformer as lf
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.learning import Run, Settings, Tasks, train

SHOWN = (0, 250, 1000, 2000, 5000)
LLOYD = lf.recipes.lloyd()
TRAININGS = {
    "learned layer, random": ({}, None, "random"),
    "learned layer, constructed": ({}, None, "constructed"),
    **{
        f"lloyd, straight-through {gamma:g}": (
            {"learning_rate": 0.001, "n_steps": 2000},
            lf.recipes.straight_through(LLOYD, gamma),
            "constructed",
        )
        for gamma in (10.0, 30.0, 100.0)
    },
    "lloyd, softened 30": (
        {"learning_rate": 0.001, "n_steps": 2000},
        lf.recipes.softened(LLOYD, 30.0),
        "constructed",
    ),
    "lloyd as it is": ({"learning_rate": 0.001, "n_steps": 2000}, LLOYD, "constructed"),
    "lloyd, straight-through 30, rate 0.01": (
        {"n_steps": 2000},
        lf.recipes.straight_through(LLOYD, 30.0),
        "constructed",
    ),
}


def measure_start(options: dict, recipe: lf.Recipe | None, start: str) -> dict:
    """Relative objectives of three seeds by step, and the seconds of training."""
    settings = Settings(
        Tasks(4, 6, 64), **{"n_steps": 5000, "batch_size": 16, "evaluate_every": 250, **options}
    )
    runs = [Run(seed) for seed in range(3)]
    trained = train(settings, runs, recipe=recipe, start=start, device="cpu")
    return {
        "settings": trained.settings.written(),
        "relative": {e.step: e.relative for e in trained.history},
        "seconds": round(trained.seconds, 1),
    }


def main() -> None:
    warnings.simplefilter("ignore", NoGradientWarning)
    result = {}
    for name, training in TRAININGS.items():
        result[name] = measure_start(*training)
        relative = result[name]["relative"]
        cells = [", ".join(f"{r:.3f}" for r in relative.get(step, ())) for step in SHOWN]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print(save("starts", {**provenance(), "result": result}))


if __name__ == "__main__":
    main()
