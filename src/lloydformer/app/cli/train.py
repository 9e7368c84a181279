"""`lloydformer train`: train the layer; write its weights with a card, a log and a plot."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloydformer.app.cli.terminal import print_json, print_table, progress
from lloydformer.app.jobs.text_values import parse_count, parse_numbers
from lloydformer.app.options import Json, command_of, option
from lloydformer.learning.families import FAMILIES

if TYPE_CHECKING:
    from lloydformer.learning.settings import Run, Settings
    from lloydformer.learning.trainer import Evaluation

# Options that can be used together with --like; the card sets all others.
WITH_LIKE = ("like", "device", "output", "force")


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """The options of `lloydformer train`; their defaults are the paper's protocol.

    `runs` and `settings` return what training takes; the other fields say where it runs and what
    it writes.
    """

    like: str | None = option(
        None, metavar="CARD", help="Repeat the training of this card: a name (symmetric) or a path."
    )
    features: str = option(
        "32", flag="-d", metavar="D", help="Number of features, or a range 4:32."
    )
    clusters: str = option("10", flag="-k", metavar="K", help="Clusters of a task, or a range.")
    points: str = option("512", metavar="N", help="Points of a task, or a range 128:1024.")
    components: str | None = option(
        None, metavar="M", help="Components of the mixture.  [default: K]"
    )
    family: str = option("normal", help=f"Distribution: {', '.join(FAMILIES)}; or several: a,b.")
    weights: str = option("equal", help="Weights of the components: equal or random.")
    scales: str = option("equal", help="Scales of the components: equal or random.")
    codes: str = option("onehot", help="Codes of the clusters: onehot, binary or none.")
    activation: str = option("softmax", help="Attention: softmax or sparsemax.")
    bias: bool = option(True, help="Linear maps with a bias.")
    scaled: bool = option(True, help="Divide scores by the root of d_emb.")
    dropout: float = option(0.01, help="Dropout of attention weights.")
    decoder: str = option(
        "euclidean", help="Scores of the decoder: euclidean, or dot (the text's)."
    )
    smoothing: str = option("softmax", help="Smoothing of the loss: softmax, sparsemax or exact.")
    loss_temperature: str = option(
        "0.1", metavar="L", help="A temperature, or several: 1,0.25,0.1."
    )
    seed: str = option("0", metavar="S", help="A seed, or several: 0,1,2.")
    start: str = option(
        "random", help="Weights before training: random, or constructed (a Lloyd step)."
    )
    start_noise: float = option(0.0, help="Noise added to constructed weights.")
    steps: int = option(10_000, minimum=1, help="Training steps.")
    batch: int = option(32, minimum=1, help="Tasks in a step.")
    unrolled: int = option(1, minimum=1, help="Layers before the loss.")
    learning_rate: float = option(0.01, help="Learning rate of Adam.")
    schedule: str = option(
        "plateau", help="Schedule of the learning rate: plateau, cosine or constant."
    )
    clip: float | None = option(None, help="Maximum norm of a gradient.")
    evaluate_every: int = option(50, minimum=1, help="Steps between evaluations.")
    validation: int = option(320, minimum=1, help="Validation tasks.")
    device: str | None = option(None, help="cpu or cuda.  [default: cuda if available]")
    output: Path | None = option(
        None, flag="-o", metavar="FOLDER", help="Output folder.  [default: learned-dD-kK]"
    )
    plot: Path | None = option(
        None, metavar="FILE", help="A picture, updated after each evaluation."
    )
    together: int | None = option(
        None, minimum=1, help="Runs in one batch.  [default: all, or each rank's share]"
    )
    resume: bool = option(False, help="Continue from the checkpoint.")
    force: bool = option(False, help="Start over, and replace a checkpoint.")

    def __post_init__(self) -> None:
        """Raise ValueError if an option is given that the card of --like already sets."""
        others = sorted(
            field.name
            for field in fields(self)
            if getattr(self, field.name) != field.default and field.name not in WITH_LIKE
        )
        if self.like is not None and others:
            option = others[0].replace("_", "-")
            raise ValueError(f"--like: the card also sets --{option}; leave --{option} out")

    def settings(self) -> "Settings":
        """Return the settings that all runs share."""
        from lloydformer.learning.settings import Settings
        from lloydformer.learning.tasks import Tasks

        tasks = Tasks(
            parse_count("features", self.features),
            parse_count("clusters", self.clusters),
            parse_count("points", self.points),
            None if self.components is None else parse_count("components", self.components),
            self.weights,
            self.scales,
        )
        # Options with the names of settings are passed on; four have shorter names.
        shared = [each.name for each in fields(Settings) if hasattr(self, each.name)]
        values = {name: getattr(self, name) for name in shared}
        values["codes"] = None if self.codes == "none" else self.codes
        return Settings(
            tasks,
            n_unrolled=self.unrolled,
            n_steps=self.steps,
            batch_size=self.batch,
            n_validation=self.validation,
            **values,
        )

    def runs(self) -> "list[Run]":
        """Return a run for each seed, loss temperature and family."""
        from lloydformer.learning.settings import Run

        seeds = parse_numbers("seed", self.seed, int)
        temperatures = parse_numbers("loss-temperature", self.loss_temperature, float)
        return [Run(*each) for each in product(seeds, temperatures, self.family.split(","))]


@command_of(TrainOptions)
def train(options: TrainOptions, json: Json = False) -> None:
    """Train the transformer's layer to cluster.

    The defaults are the paper's protocol. Several seeds, loss temperatures or families are trained
    together; under torchrun they are spread over its processes. Writes to FOLDER a checkpoint,
    log.csv, and at the end for each run its weights (.safetensors) with a card (.json) that
    lf.LearnedKMeans takes as `pretrained`. With --like, settings and seeds are those of a card; on
    the same kind of device the weights are equal to those of the card.
    """
    from lloydformer.app.jobs.train import TrainingPlot, choose_device, train_and_export
    from lloydformer.engines.ranks import join_ranks

    ranks = join_ranks()
    if options.like is not None:
        if ranks.size > 1:
            raise ValueError(
                "--like: trains the runs of the card together; start it without torchrun"
            )
        return _train_like(options, options.like, json)
    settings, runs = options.settings(), options.runs()
    folder = options.output or Path(f"learned-{settings.name}")
    plot = None if options.plot is None else TrainingPlot(options.plot)
    is_first = ranks.rank == 0
    with training_progress(settings.n_steps, folder, plot, is_shown=is_first) as callback:
        how = {name: getattr(options, name) for name in ("resume", "force", "together")}
        device = choose_device(options.device)
        rows = train_and_export(settings, runs, folder, device, ranks, callback=callback, **how)
    if rows:  # only rank 0 has them: one table is printed
        _print_rows(settings.written(), rows, json)
    return None


def _train_like(options: TrainOptions, card: str, json: bool) -> None:
    """Train with the settings of a card."""
    from lloydformer.app.jobs.train import choose_device, train_and_export, train_symmetric_again
    from lloydformer.learning.pretrained import load, read_card
    from lloydformer.learning.symmetric.model import load_symmetric

    device = choose_device(options.device)
    if read_card(card).is_symmetric:
        folder = options.output or Path("learned-symmetric")
        symmetric = load_symmetric(card)
        total = symmetric.settings.n_updates

        def describe_stop(done: int) -> str:
            return f"stopped after update {done} of {total}; nothing was written"

        with progress("train", total, describe_stop) as bar:

            def after(update: int, loss: float) -> None:
                bar.reach(update, f"train: loss {loss:.4f}")

            row = train_symmetric_again(symmetric, folder, device, after, options.force)
        # All digits: a difference of 1e-8 from the card's numbers is to be seen.
        return _print_rows(asdict(symmetric.settings), [row], json, digits=None)
    model = load(card)
    folder = options.output or Path(f"learned-{model.settings.name}")
    with training_progress(model.settings.n_steps, folder, is_resumable=False) as callback:
        rows = train_and_export(
            model.settings, [model.run], folder, device, force=options.force, callback=callback
        )
    return _print_rows(model.settings.written(), rows, json)


@contextmanager
def training_progress(
    n_steps: int,
    folder: Path,
    plot: "Callable[[Evaluation], None] | None" = None,
    is_resumable: bool = True,
    is_shown: bool = True,
) -> "Iterator[Callable[[Evaluation], None] | None]":
    """Show a progress bar, and yield the callback of training; on Ctrl-C, print what is done.

    plot: another callback. is_resumable: whether --resume may follow. is_shown: False in all ranks
    but the first, whose callback is never called.
    """
    if not is_shown:
        yield None
        return
    last: Evaluation | None = None

    def after(evaluation: "Evaluation") -> None:
        nonlocal last
        last = evaluation
        best, worst = min(evaluation.relative), max(evaluation.relative)
        words = f"{best:.4f}" if len(evaluation.relative) == 1 else f"{best:.4f} to {worst:.4f}"
        bar.reach(evaluation.step, f"train: {words} of a Lloyd step")
        if plot is not None:
            plot(evaluation)

    def describe_stop(step: int) -> str:
        if last is None:
            return "stopped before the first evaluation"
        words = (
            f"stopped after step {step} of {last.n_steps}, at "
            f"{min(last.relative):.4f} of a Lloyd step"
        )
        if not is_resumable:
            return words
        from lloydformer.learning.training import CHECKPOINT

        return f"{words}; continue from {folder / CHECKPOINT} with --resume"

    with progress("train", n_steps, describe_stop) as bar:
        yield after


def _print_rows(
    settings: dict[str, Any], rows: list[dict[str, Any]], json: bool, digits: int | None = 4
) -> None:
    """Print a table with a row for each run, or one JSON object."""
    if json:
        return print_json({"settings": settings, "rows": rows})

    def cell(value: Any) -> str:
        is_rounded = digits is not None and isinstance(value, float)
        return f"{value:.{digits}f}" if is_rounded else str(value)

    print_table(list(rows[0]), [[cell(value) for value in row.values()] for row in rows])
    return None
