"""`lloydformer train`: train the layer; write its weights with a card, a log and a plot."""

from inspect import signature
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from lloydformer.cli.options import count_of, integer, numbers_of
from lloydformer.cli.train_words import TrainingProgress, like_progress, print_rows
from lloydformer.learning.families import FAMILIES


def train(
    like: Annotated[
        str | None,
        typer.Option(
            metavar="CARD", help="Train again as this card says: a name (symmetric) or a path."
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option("-d", "--features", metavar="D", help="Number of features, or a range 4:32."),
    ] = "32",
    clusters: Annotated[
        str, typer.Option("-k", "--clusters", metavar="K", help="Clusters of a task, or a range.")
    ] = "10",
    points: Annotated[
        str, typer.Option(metavar="N", help="Points of a task, or a range 128:1024.")
    ] = "512",
    components: Annotated[
        str | None, typer.Option(metavar="M", help="Components of the mixture.  [default: K]")
    ] = None,
    family: Annotated[
        str, typer.Option(help=f"Distribution: {', '.join(FAMILIES)}; or several: a,b.")
    ] = "normal",
    weights: Annotated[
        str, typer.Option(help="Weights of the components: equal or random.")
    ] = "equal",
    scales: Annotated[
        str, typer.Option(help="Scales of the components: equal or random.")
    ] = "equal",
    codes: Annotated[str, typer.Option(help="Codes of the clusters: onehot, binary or none.")] = (
        "onehot"
    ),
    activation: Annotated[str, typer.Option(help="Attention: softmax or sparsemax.")] = ("softmax"),
    bias: Annotated[bool, typer.Option(help="Linear maps with a bias.")] = True,
    scaled: Annotated[bool, typer.Option(help="Divide scores by the root of d_emb.")] = True,
    dropout: Annotated[float, typer.Option(help="Dropout of attention weights.")] = 0.01,
    smoothing: Annotated[
        str, typer.Option(help="Smoothing of the loss: softmax, sparsemax or exact.")
    ] = ("softmax"),
    loss_temperature: Annotated[
        str,
        typer.Option(
            "--loss-temperature", metavar="L", help="A temperature, or several: 1,0.25,0.1."
        ),
    ] = "0.1",
    seed: Annotated[str, typer.Option(metavar="S", help="A seed, or several: 0,1,2.")] = "0",
    start: Annotated[
        str, typer.Option(help="Weights before training: random, or constructed (a Lloyd step).")
    ] = "random",
    start_noise: Annotated[
        float, typer.Option("--start-noise", help="Noise added to constructed weights.")
    ] = 0.0,
    steps: Annotated[int, integer(help="Training steps.")] = 10_000,
    batch: Annotated[int, integer(help="Tasks in a step.")] = 32,
    unrolled: Annotated[int, integer(help="Layers before the loss.")] = 1,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Learning rate of Adam.")
    ] = 0.01,
    schedule: Annotated[
        str, typer.Option(help="Schedule of the learning rate: plateau, cosine or constant.")
    ] = "plateau",
    clip: Annotated[float | None, typer.Option(help="Maximum norm of a gradient.")] = None,
    evaluate_every: Annotated[
        int, integer("--evaluate-every", help="Steps between evaluations.")
    ] = 50,
    validation: Annotated[int, integer(help="Validation tasks.")] = 320,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda.  [default: cuda if available]")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Output folder.  [default: learned-dD-kK]"
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture, written again after each evaluation."),
    ] = None,
    together: Annotated[
        int | None,
        integer(help="Runs in one batch.  [default: all, or each rank's share]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Start over, and replace a checkpoint.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train the transformer's layer to cluster.

    The defaults are the paper's protocol. Several seeds, loss temperatures or families are trained
    together; under torchrun they are spread over its processes. Writes to FOLDER a checkpoint,
    log.csv, and at the end for each run its weights (.safetensors) with a card (.json) that
    lf.LearnedKMeans takes as `pretrained`. With --like, settings and seeds are those of a card; on
    the same kind of device the weights are equal to those of the card.
    """
    if like is not None:
        _refuse_others(locals())
    from lloydformer.engines.ranks import joined_ranks
    from lloydformer.jobs.train import TrainingPlot, choose_device, train_and_export
    from lloydformer.learning.settings import Run, Settings
    from lloydformer.learning.tasks import Tasks

    ranks = joined_ranks()
    if like is not None and ranks.size > 1:
        raise ValueError("--like: trains the runs of the card together; start it without torchrun")
    if like is not None:
        return _train_like(like, output, choose_device(device), force, json)
    tasks = Tasks(
        count_of("features", features), count_of("clusters", clusters), count_of("points", points),
        None if components is None else count_of("components", components),
        weights, scales,
    )  # fmt: skip
    settings = Settings(
        tasks, None if codes == "none" else codes, bias, scaled,
        activation, dropout, smoothing, unrolled, steps, batch,
        learning_rate, schedule, clip=clip, evaluate_every=evaluate_every,
        n_validation=validation, start=start, start_noise=start_noise,
    )  # fmt: skip
    runs = [
        Run(one, temperature, name)
        for one, temperature, name in product(
            numbers_of("seed", seed, int),
            numbers_of("loss-temperature", loss_temperature, float),
            family.split(","),
        )
    ]
    folder = output or Path(f"learned-{settings.name}")
    drawing = None if plot is None else TrainingPlot(plot)
    with TrainingProgress(steps, folder, drawing, shown=ranks.rank == 0) as callback:
        rows = train_and_export(settings, runs, folder, choose_device(device), resume=resume,
                                force=force, callback=callback, together=together,
                                ranks=ranks)  # fmt: skip
    return print_rows(settings.written(), rows, json) if rows else None


_WITH_LIKE = {"like", "device", "output", "force", "json"}
"""Options that can be used together with --like."""


def _refuse_others(options: dict[str, Any]) -> None:
    """Raise ValueError if an option is given that the card of --like already sets."""
    defaults = {name: option.default for name, option in signature(train).parameters.items()}
    others = sorted(n for n in defaults if options[n] != defaults[n] and n not in _WITH_LIKE)
    if others:
        option = others[0].replace("_", "-")
        raise ValueError(f"--like: the card sets --{option} too; leave --{option} out")


def _train_like(like: str, output: Path | None, device: str, force: bool, json: bool) -> None:
    """Train with the settings of a card."""
    from lloydformer.jobs.train import train_and_export
    from lloydformer.jobs.train_like import SymmetricTraining, is_symmetric
    from lloydformer.learning.pretrained import load

    if is_symmetric(like):
        job = SymmetricTraining(like, output or Path("learned-symmetric"), force)
        with like_progress(job.n_updates) as callback:
            row = job.run(device, callback)
        return print_rows(job.model.settings.written(), [row], json, cell=str)
    found = load(like)
    folder = output or Path(f"learned-{found.settings.name}")
    with TrainingProgress(found.settings.n_steps, folder, resumable=False) as callback:
        rows = train_and_export(found.settings, [found.run], folder, device, force=force,
                                 callback=callback)  # fmt: skip
    return print_rows(found.settings.written(), rows, json)
