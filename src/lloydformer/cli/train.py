"""`lloydformer train`: train the layer, and leave its weights with a card, a log and a plot."""

from collections.abc import Callable
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from lloydformer.cli.terminal import Bar, print_json, print_table, progress, stderr
from lloydformer.cli.train_like import is_symmetric, train_like
from lloydformer.learning.export import export_runs, scores
from lloydformer.learning.pretrained import load
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.tasks import Count, Tasks
from lloydformer.learning.training import CHECKPOINT, Evaluation, Trained
from lloydformer.learning.training import train as train_runs


def train(
    like: Annotated[
        str | None,
        typer.Option(
            metavar="CARD", help="As this card says: a name such as symmetric, or a path."
        ),
    ] = None,
    features: Annotated[
        str, typer.Option("-d", "--features", metavar="D", help="Dimensions, or a range 4:32.")
    ] = "32",
    clusters: Annotated[
        str, typer.Option("-k", "--clusters", metavar="K", help="Clusters of a task.")
    ] = "10",
    points: Annotated[
        str, typer.Option(metavar="N", help="Points of a task, or 128:1024.")
    ] = "512",
    components: Annotated[
        str | None, typer.Option(metavar="M", help="Components of a mixture.  [default: K]")
    ] = None,
    family: Annotated[
        str, typer.Option(help="normal, cauchy, gumbel, laplace or lognormal; or several: a,b.")
    ] = "normal",
    weights: Annotated[str, typer.Option(help="Of components: equal or random.")] = "equal",
    scales: Annotated[str, typer.Option(help="Of components: equal or random.")] = "equal",
    codes: Annotated[str, typer.Option(help="Scratch dimensions: onehot, binary or none.")] = (
        "onehot"
    ),
    activation: Annotated[str, typer.Option(help="Of attention: softmax or sparsemax.")] = (
        "softmax"
    ),
    bias: Annotated[bool, typer.Option(help="Dense maps with a bias.")] = True,
    scaled: Annotated[bool, typer.Option(help="Scores divided by the root of d_emb.")] = True,
    dropout: Annotated[float, typer.Option(help="Of attention weights.")] = 0.01,
    smoothing: Annotated[str, typer.Option(help="Of the loss: softmax, sparsemax or exact.")] = (
        "softmax"
    ),
    loss_temperature: Annotated[
        str, typer.Option("--loss-temperature", metavar="L", help="Or several: 1,0.25,0.1.")
    ] = "0.1",
    seed: Annotated[str, typer.Option(metavar="S", help="Or several: 0,1,2.")] = "0",
    steps: Annotated[int, typer.Option(min=1, help="Of training.")] = 10_000,
    batch: Annotated[int, typer.Option(min=1, help="Tasks of a step.")] = 32,
    unrolled: Annotated[int, typer.Option(min=1, help="Layers in front of the loss.")] = 1,
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 0.01,
    schedule: Annotated[str, typer.Option(help="plateau, cosine or constant.")] = "plateau",
    clip: Annotated[float | None, typer.Option(help="Greatest norm of a gradient.")] = None,
    evaluate_every: Annotated[int, typer.Option("--evaluate-every", min=1)] = 50,
    validation: Annotated[int, typer.Option(min=1, help="Validation tasks.")] = 320,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.  [default: cuda if any]")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FOLDER", help="[default: learned-dD-kK]"),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A picture, renewed at each evaluation.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Begin anew over a checkpoint.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train the transformer's layer to cluster, by the paper's protocol if nothing else is said.

    Several seeds, loss temperatures or families are trained together. Writes to FOLDER a
    checkpoint, log.csv, and at the end for each run its weights (.safetensors) with a card (.json)
    that lf.LearnedKMeans takes as `pretrained`. With --like, settings and seeds are those of a
    card, and what comes out is what it holds, on the same kind of device.
    """
    if like is not None:
        _refuse_others(locals())
        return _again(like, output, _device(device), force, json)
    tasks = Tasks(
        _count("features", features), _count("clusters", clusters), _count("points", points),
        None if components is None else _count("components", components),
        weights, scales,
    )  # fmt: skip
    settings = Settings(
        tasks, None if codes == "none" else codes, bias, scaled,
        activation, dropout, smoothing, unrolled, steps, batch,
        learning_rate, schedule, clip=clip, evaluate_every=evaluate_every,
        n_validation=validation,
    )  # fmt: skip
    runs = [
        Run(one, temperature, name)
        for one, temperature, name in product(
            _several("seed", seed, int),
            _several("loss-temperature", loss_temperature, float),
            family.split(","),
        )
    ]
    folder = output or Path(f"learned-{settings.name}")
    with progress("train", steps) as bar:
        heard = _Heard(bar, plot, folder)
        try:
            trained = train_runs(
                settings, runs, device=_device(device), folder=folder, resume=resume, force=force,
                callback=heard,
            )  # fmt: skip
        except KeyboardInterrupt:
            stderr.print(heard.so_far(), markup=False, soft_wrap=True)
            raise
    return _say(trained, folder, _device(device), json)


_OF_LIKE = {"like", "device", "output", "force", "json"}


def _refuse_others(options: dict[str, Any]) -> None:
    """Options that say otherwise than a card."""
    usual = {name: option.default for name, option in signature(train).parameters.items()}
    others = sorted(n for n in usual if options[n] != usual[n] and n not in _OF_LIKE)
    if others:
        option = others[0].replace("_", "-")
        raise ValueError(f"--like: the card says the rest; leave out --{option}")


def _again(like: str, output: Path | None, device: str, force: bool, json: bool) -> None:
    """Train as a card says."""
    if is_symmetric(like):
        return train_like(like, output or Path("learned-symmetric"), device, force, json)
    found = load(like)
    folder = output or Path(f"learned-{found.settings.name}")
    trained = train_runs(found.settings, [found.run], device=device, folder=folder, force=force)
    return _say(trained, folder, device, json)


class _Heard:
    """The progress bar and the live plot."""

    def __init__(self, bar: Bar, plot: Path | None, folder: Path) -> None:
        self.bar, self.plot, self.folder = bar, plot, folder
        self.history: list[Evaluation] = []

    def __call__(self, e: Evaluation) -> None:
        self.history.append(e)
        best, worst = min(e.relative), max(e.relative)
        words = f"{best:.4f}" if len(e.relative) == 1 else f"{best:.4f} to {worst:.4f}"
        self.bar.reach(e.step, f"train: {words} of a Lloyd step")
        if self.plot is not None:
            _draw(self.history, self.plot)

    def so_far(self) -> str:
        if not self.history:
            return "stopped before the first evaluation"
        last = self.history[-1]
        return (
            f"stopped after step {last.step} of {last.n_steps}, at {min(last.relative):.4f} of a "
            f"Lloyd step; go on from {self.folder / CHECKPOINT} with --resume"
        )


def _draw(history: list[Evaluation], path: Path) -> None:
    import matplotlib.pyplot as plt  # takes a second to import

    from lloydformer.plots.training import convergence
    from lloydformer.storage.atomic import replacing

    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    convergence(history, ax=ax)
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix.lstrip(".") or "png")
    plt.close(figure)


def _say(trained: Trained, folder: Path, device: str, json: bool) -> None:
    comparison = scores(trained, device)
    cards = export_runs(folder, trained, comparison)
    rows = [
        {
            "card": str(card), "seed": run.seed, "loss_temperature": run.loss_temperature,
            "family": run.family, "relative_objective": relative,
            "initial": initial, "lloyd": lloyd, "transformer": transformer,
        }
        for card, run, relative, initial, lloyd, transformer in zip(
            cards, trained.runs, trained.history[-1].relative, comparison.lloyd[:, 0].tolist(),
            comparison.lloyd[:, -1].tolist(), comparison.transformer[:, -1].tolist(), strict=True,
        )
    ]  # fmt: skip
    if json:
        return print_json({"settings": trained.settings.written(), "rows": rows})
    print_table(list(rows[0]), [[_cell(v) for v in row.values()] for row in rows])
    return None


def _cell(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _device(asked: str | None) -> str:
    there = torch.cuda.is_available()
    if asked not in (None, "cpu", "cuda") or (asked == "cuda" and not there):
        raise ValueError(f"--device: found {asked!r}; pass cpu" + (" or cuda" if there else ""))
    return asked or ("cuda" if there else "cpu")


def _count(name: str, text: str) -> Count:
    parts = text.split(":")
    if not 1 <= len(parts) <= 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"--{name}: found {text!r}; pass a number, or LEAST:GREATEST")
    numbers = tuple(int(part) for part in parts)
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _several(name: str, text: str, kind: Callable[[str], Any]) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--{name}: found {text!r}; pass a number, or several as in 0,1,2"
        ) from None
