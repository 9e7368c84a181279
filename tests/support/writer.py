"""A process that writes to one folder again and again.

It reads lines `KIND FOLDER NUMBER COUNT`, writes COUNT times, and answers with a line.
"""

import sys
from pathlib import Path

import lloydformer as lf
from lloydformer.data.storage.atomic_folders import atomic_folder
from lloydformer.learning.pretrained import load, save


def writes_models(folder: Path, k: int) -> None:
    points = [[float(i)] for i in range(k)]
    MODELS.setdefault(k, lf.KMeans(k, init=points).fit(points))
    MODELS[k].save_pretrained(folder, force=True)


def writes_runs(folder: Path, k: int) -> None:
    """A folder as `lloydformer fit --force` writes it: a model in it, and a text."""
    with atomic_folder(folder, ("text", "model/model-*.safetensors", "model/config.json", "last"),
                 force=True) as place:  # fmt: skip
        for name in ("text", "last"):
            (place / name).write_text(str(k))
        writes_models(place / "model", k)


def writes_cards(folder: Path, k: int) -> None:
    """Weights and a card, as `lloydformer train` writes them."""
    shipped = SHIPPED
    save(folder / "card", shipped.settings, shipped.run, shipped.weights[0] * k, {"k": k})


SHIPPED = load("d4-k6")
MODELS: dict[int, lf.KMeans] = {}
KINDS = {"models": writes_models, "runs": writes_runs, "cards": writes_cards}

if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        kind, folder, number, count = line.split()
        for _ in range(int(count)):
            KINDS[kind](Path(folder), int(number))
        print("done", flush=True)
