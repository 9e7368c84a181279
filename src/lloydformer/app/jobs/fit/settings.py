"""The settings of `fit` and `predict`, checked before any work. Imports little."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from lloydformer.app.jobs.text_values import data_name, parse_clusters, parse_names
from lloydformer.data.paths import check_source
from lloydformer.data.storage.model_folder import read_config
from lloydformer.data.table_options import TableOptions
from lloydformer.estimators.registry import ALGORITHMS

if TYPE_CHECKING:
    from lloydformer.estimators.base import Clusterer

# Ways to choose the number of clusters from a range.
CRITERIA = ("silhouette", "calinski-harabasz", "gap", "stability")
# k-means by a trained layer. It is not registered: it has no recipe of the paper's table.
LEARNED = "learned"


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """What the user asks `lloydformer fit` to do: each field is an option of the command.

    Values are as typed on the command line; None is an option that was not given. The constructor
    raises ValueError for what can be refused at once, without importing torch; `check` does the
    other checks.

    Attributes
    ----------
    data : str
        A file, a folder, "-" for standard input, or openml:NAME; with a cluster, also a pattern.
    clusters, select : str
        The number of clusters or a range of it, and the criterion that chooses from a range.
    algorithm : str
        One of `algorithm_names()`.
    output, labels, report, force
        The folder to write, the format of the labels, whether to write a page, and whether to
        replace files that exist.
    columns, exclude, one_hot, numeric_only, id_column, missing, sep, decimal, encoding, header, sheet
        How to read the table; see `TableOptions`.
    scale : str
        "minmax" or "standard".
    init, n_init, max_iter, tol, keep, inverse_temperature, patience, effort, time_limit, checkpoint
        Parameters of the estimator.
    seed : int
        Its `random_state`, and the seed of samples.
    start_from : Path
        A model whose centers the fit starts from.
    cluster, workers
        The address of a Dask scheduler, or the number of processes to start.
    start_centers : ndarray
        The centers of `start_from`, once it is loaded.
    """  # noqa: E501 (names of fields)

    data: str
    clusters: str | None = None
    select: str = CRITERIA[0]
    algorithm: str = "kmeans"
    output: Path | None = None
    report: bool = False
    labels: str = "csv"
    columns: str | None = None
    exclude: str | None = None
    numeric_only: bool = False
    one_hot: str | None = None
    id_column: str | None = None
    missing: str = "error"
    scale: str | None = None
    init: str | None = None
    n_init: int | None = None
    max_iter: int | None = None
    tol: float | None = None
    seed: int = 0
    keep: float | None = None
    inverse_temperature: float | None = None
    patience: int | None = None
    effort: str | None = None
    time_limit: float | None = None
    start_from: Path | None = None
    checkpoint: Path | None = None
    cluster: str | None = None
    workers: int | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    sheet: str | None = None
    force: bool = False
    start_centers: Any = None

    def __post_init__(self) -> None:
        assert self.table  # its constructor checks the options of the table
        if self.select not in CRITERIA:
            raise ValueError(f"--select: found {self.select!r}; pass one of {', '.join(CRITERIA)}")
        if self.algorithm not in algorithm_names():
            raise ValueError(
                f"--algorithm: found {self.algorithm!r}; pass one of {', '.join(algorithm_names())}"
            )
        if self.clusters is not None:
            parse_clusters(self.clusters)
        if self.is_on_cluster:
            self._check_for_cluster()
        else:
            check_source(self.data)
        if self.start_from is not None and self.init is None and self.n_init is None:
            check_model(self.start_from)

    def _check_for_cluster(self) -> None:
        """Raise ValueError for options that do not go together with a cluster."""
        if self.cluster is not None and self.workers is not None:
            raise ValueError(
                "--workers: found together with --cluster; the workers of a cluster are its own"
            )
        option = "--workers" if self.cluster is None else "--cluster"
        refused = {
            "--report": self.report,
            "--scale": self.scale,
            "--numeric-only": self.numeric_only,
            "--one-hot": self.one_hot,
            "--id-column": self.id_column,
            "--missing": self.missing != "error",
            "--start-from": self.start_from,
            "--sheet": self.sheet,
            "--encoding": self.encoding,
            "--time-limit": self.time_limit,
        }
        for name, value in refused.items():
            if value:
                raise ValueError(
                    f"{name}: not with {option}, whose workers read the data; leave it out"
                )

    @cached_property
    def table(self) -> TableOptions:
        """How to read the table."""
        return TableOptions(
            columns=parse_names(self.columns),
            exclude=parse_names(self.exclude) or (),
            one_hot=parse_names(self.one_hot) or (),
            numeric_only=self.numeric_only,
            id_column=self.id_column,
            missing=self.missing,
            sep=self.sep,
            decimal=self.decimal,
            encoding=self.encoding,
            header=self.header,
            sheet=self.sheet,
            shell=True,
        )

    @property
    def is_on_cluster(self) -> bool:
        """True if workers read the data."""
        return self.cluster is not None or self.workers is not None

    @property
    def folder(self) -> Path:
        """The output folder; by default it has the name of the data."""
        if self.output is not None:
            return self.output
        name = last_name(self.data) if self.is_on_cluster else data_name(self.data)
        return Path(f"{name}-clusters")

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the estimator that the user gave, by name."""
        effort = self.effort
        is_number = effort is not None and re.fullmatch(r"-?\d{1,19}", effort, re.ASCII)
        values = {
            "init": self.init,
            "n_init": self.n_init,
            "max_iter": self.max_iter,
            "tol": self.tol,
            "keep": self.keep,
            "inverse_temperature": self.inverse_temperature,
            "patience": self.patience,
            "effort": int(str(effort)) if is_number else effort,
            "time_limit": self.time_limit,
            "random_state": self.seed,
            "checkpoint": None if self.checkpoint is None else str(self.checkpoint),
        }
        if self.start_centers is not None:
            values |= {"init": self.start_centers, "n_init": 1}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def printable_parameters(self) -> dict[str, Any]:
        """`parameters` as JSON: the word "centers" replaces an array."""
        return {
            name: value if isinstance(value, int | float | str) else "centers"
            for name, value in self.parameters.items()
        }

    def model(self, n_clusters: int, **more: Any) -> "Clusterer":
        """Return a new estimator; `more` are parameters where the user gave none."""
        return estimator_of(self.algorithm)(n_clusters, **{**more, **self.parameters})

    def check(self) -> None:
        """Raise ValueError for values that are not allowed, and options that do not go together."""
        from lloydformer.data.column_statistics import Scale
        from lloydformer.estimators.parameter_checks import find_invalid_parameter

        for name in self.parameters:
            having = [a for a in algorithm_names() if name in estimator_of(a)().get_params()]
            if self.algorithm not in having:
                raise ValueError(
                    f"{option_of(name)}: {self.algorithm} does not have this option; leave it "
                    f"out, or choose --algorithm {' or '.join(having)}"
                )
        if (invalid := find_invalid_parameter(self.model(1))) is not None:
            name, value, allowed = invalid
            raise ValueError(
                f"{option_of(name)}: found {value!r}; pass {_describe_allowed(value, allowed)}"
            )
        scales = get_args(Scale)
        if self.scale is not None and self.scale not in scales:
            raise ValueError(f"--scale: found {self.scale!r}; pass {' or '.join(scales)}")
        if self.start_from is not None and not (self.init is None and self.n_init is None):
            raise ValueError(
                "--start-from: found together with --init or --n-init; pass only one of them"
            )


@dataclass(frozen=True, kw_only=True)
class PredictSettings:
    """What the user asks `lloydformer predict` to do: each field is an option of the command.

    `missing` is None for what the fit did. The other fields are those of `FitSettings`; `model` is
    the folder of a model, or the output folder of a fit.
    """

    model: Path
    data: str
    output: Path | None = None
    columns: str | None = None
    id_column: str | None = None
    missing: str | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    sheet: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        self.table("error")  # its constructor checks the options of the table
        check_model(self.model)
        check_source(self.data)

    @property
    def path(self) -> Path:
        """The file of labels; by default it has the name of the data."""
        return self.output or Path(f"{data_name(self.data)}-labels.csv")

    def table(self, missing: str) -> TableOptions:
        """Return how to read the table; `missing` is what the fit did with missing values."""
        return TableOptions(
            columns=parse_names(self.columns),
            id_column=self.id_column,
            missing=self.missing or missing,
            sep=self.sep,
            decimal=self.decimal,
            encoding=self.encoding,
            header=self.header,
            sheet=self.sheet,
            shell=True,
        )


def algorithm_names() -> tuple[str, ...]:
    """Return the names of all algorithms; imports none of them."""
    return (*ALGORITHMS, LEARNED)


def estimator_of(algorithm: str) -> "type[Clusterer]":
    """Return the estimator of an algorithm."""
    if algorithm == LEARNED and algorithm not in ALGORITHMS:
        from lloydformer.learning.estimator import LearnedKMeans

        return LearnedKMeans
    return ALGORITHMS[algorithm].estimator


def option_of(parameter: str) -> str:
    """Return the command-line option that sets a parameter of an estimator."""
    return "--seed" if parameter == "random_state" else f"--{parameter.replace('_', '-')}"


def _describe_allowed(value: object, allowed: list[Any]) -> str:
    """Describe the constraints of a parameter for a user who passed `value`.

    >>> from numbers import Integral, Real
    >>> from lloydformer.estimators.parameter_checks import Interval, StrOptions
    >>> _describe_allowed(3.0, [Interval(Real, 0, 1, closed="right")])
    'a number above 0 and at most 1'
    >>> _describe_allowed("x", [StrOptions({"low", "high"}), Interval(Integral, 0, 9, closed="both")])
    'high or low or a whole number'
    """  # noqa: E501 (a doctest is one line)
    from lloydformer.estimators.parameter_checks import Interval, StrOptions

    words = [word for each in allowed if isinstance(each, StrOptions) for word in each.options]
    intervals = [each for each in allowed if isinstance(each, Interval)]
    if words and (isinstance(value, str) or not intervals):
        return " or ".join([*sorted(words), *(["a whole number"] if intervals else [])])
    if not intervals:
        return " or ".join(map(str, allowed))
    low, high, closed = intervals[0].left, intervals[0].right, intervals[0].closed
    text = f"a number {'at least' if closed in ('left', 'both') else 'above'} {low:g}"
    if high is None:
        return text
    most = str(high).removesuffix(".0")  # "g" would round the largest integers
    return f"{text} and {'at most' if closed in ('right', 'both') else 'below'} {most}"


def model_folder(path: Path) -> Path:
    """Return the folder of a model, which may be inside the output folder of a fit."""
    inner = path / "model"
    return inner if inner.is_dir() else path


def check_model(path: Path) -> None:
    """Raise ValueError if there is no model."""
    read_config(model_folder(path))


def last_name(pattern: str) -> str:
    """Return the last name without wildcards of a file, a folder or a pattern of fsspec.

    >>> last_name("s3://place/data/*.parquet"), last_name("points.csv")
    ('data', 'points')
    """
    names = [name for name in pattern.rpartition("::")[2].split("/") if name]
    plain = [name for name in names if not any(sign in name for sign in "*?[:")]
    return Path(plain[-1]).stem if plain else "data"
