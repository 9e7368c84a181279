"""The settings of `fit` and `predict`, checked before any work. Imports little."""

import dataclasses
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloydformer.app.jobs.text_values import data_name, parse_clusters, parse_names, parse_sizes
from lloydformer.app.options import LARGEST_SEED, option
from lloydformer.data.paths import check_source
from lloydformer.data.storage.model_folder import read_config
from lloydformer.data.table_options import (
    DATES,
    KEPT,
    MISSING,
    ORDERS,
    SENTINELS,
    THOUSANDS,
    TableOptions,
)
from lloydformer.estimators.registry import ALGORITHMS

if TYPE_CHECKING:
    from lloydformer.estimators.mixture import AnyClusterer

# Ways to choose the number of clusters from a range.
CRITERIA = ("auto", "silhouette", "calinski-harabasz", "gap", "stability", "bic")
# As `lf.Scaler`, without its import.
SCALES = ("auto", "standard", "minmax", "robust", "log", "rank", "clip", "none")
# k-means by a trained layer. It is not registered: it has no recipe of the paper's table.
LEARNED = "learned"
# A Gaussian mixture. It is not registered: its components are more than centers.
MIXTURE = "mixture"
# Fields of `FitSettings` that are parameters of the estimator, under the same names.
_PARAMETERS = (
    *("init", "n_init", "max_iter", "tol", "keep", "inverse_temperature", "patience", "effort"),
    *("time_limit", "covariance_type", "size_min", "size_max"),
)
# Options that need all rows in this process, or a reader of tables that workers do not use.
_NOT_ON_CLUSTER = (
    *("report", "scale", "numeric_only", "one_hot", "id_column", "missing", "start_from", "sheet"),
    *("encoding", "time_limit", "keep_columns", "thousands", "dates", "date_order", "na_values"),
    *("sentinels", "skip_rows", "comment"),
)
_ID_COLUMN = "Column that names the rows: not clustered, but copied to the labels."
_KEEP_COLUMNS = "Copy all columns of DATA to the labels."


def algorithm_names() -> tuple[str, ...]:
    """Return the names of all algorithms; imports none of them."""
    return (*ALGORITHMS, LEARNED, MIXTURE)


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Format of the data: the options that `fit` and `predict` share."""

    sep: str | None = option(
        None,
        choices=("comma", "semicolon", "tab", "bar", "space"),
        metavar="SIGN",
        help="Separator of values.  [default: detected]",
    )
    decimal: str | None = option(
        None, choices=(".", ","), help="Decimal point.  [default: detected]"
    )
    encoding: str | None = option(
        None,
        choices=("utf-8", "cp1252", "latin-1", "utf-16"),
        metavar="NAME",
        help="Encoding of the text.  [default: detected]",
    )
    header: bool | None = option(
        None,
        show_default=False,
        help="The first line has column names, or not.  [default: detected]",
    )
    sheet: str | None = option(
        None, metavar="NAME", help="Sheet of an Excel file.  [default: the first]"
    )
    thousands: str | None = option(
        None,
        choices=tuple(THOUSANDS),
        metavar="MARK",
        help="Mark between thousands, where 1,234 or 1.234 has two readings.  [default: asks]",
    )
    date_order: str | None = option(
        None, choices=ORDERS, help="Order of dates such as 03/04/2024.  [default: asks]"
    )
    na_values: str | None = option(
        None, metavar="a,b,c", help="More words and numbers that mean a missing value."
    )
    sentinels: str | None = option(
        None,
        choices=SENTINELS,
        help="What repeated numbers such as -999 are, far from all others.  [default: asks]",
    )
    skip_rows: str | None = option(
        None, metavar="N", help="Leave out the first N lines, or lines such as 2:2,5:7."
    )
    comment: str | None = option(
        None, metavar="SIGN", help="Sign at which comments begin.  [default: lines of #]"
    )
    force: bool = option(False, help="Replace files that exist.")

    def table_options(self, **changes: Any) -> TableOptions:
        """Return how to read the table; raises ValueError for values that no file can have."""
        # Fields of both have the same names; lists of columns are one text on the command line.
        names = [each.name for each in fields(TableOptions) if hasattr(self, each.name)]
        values = {name: getattr(self, name) for name in names} | changes
        for name in ("columns", "exclude", "one_hot", "na_values"):
            if values.get(name) is not None:
                values[name] = parse_names(values[name])
        given = {name: value for name, value in values.items() if value is not None}
        return TableOptions(**given, shell=True)


@dataclass(frozen=True, kw_only=True)
class FitSettings(TableSettings):
    """The settings of `lloydformer fit`: each field is an option of the command.

    Values are as typed on the command line; None is an option that was not given. The constructor
    raises ValueError for what can be refused at once, without importing torch; `check` does the
    other checks. `start_centers` are those of the model `start_from`, once it is loaded.
    """

    data: str = option(
        dataclasses.MISSING,
        metavar="DATA",
        help="A .csv, .tsv, .xlsx, .parquet, .npy or .npz file, a text compressed as .gz or .zst, "
        "a folder of them, - for standard input, or openml:NAME.",
    )
    clusters: str | None = option(
        None,
        flag="-k",
        metavar="K",
        help="Number of clusters: 10. Or a range, 2:20, or 2:20:2 with a step, from which --select "
        "chooses.  [default: chosen from 1 to 20]",
    )
    select: str = option(
        CRITERIA[0], choices=CRITERIA, help="How the number of clusters is chosen from a range."
    )
    algorithm: str = option(
        "relocating",
        choices=algorithm_names(),
        metavar=None,
        help=f"One of {', '.join(algorithm_names())}.",
    )
    output: Path | None = option(
        None, flag="-o", metavar="FOLDER", help="Output folder.  [default: NAME-clusters]"
    )
    report: bool = option(False, help="Also write an HTML page.")
    labels: str = option("csv", choices=("csv", "parquet"), help="Format of the labels.")
    columns: str | None = option(
        None, metavar="a,b,c", help="Columns by name, or by number from 1."
    )
    exclude: str | None = option(None, metavar="a,b,c", help="Columns to leave out.")
    numeric_only: bool = option(False, help="Leave out columns that hold no numbers.")
    one_hot: str | None = option(
        None, metavar="a,b,c", help="Columns of words: a column of 0 and 1 for each word."
    )
    dates: str | None = option(
        None,
        choices=DATES,
        help="Columns of dates and times: as days since 1970, as parts (year, month, day, weekday, "
        "hour), or left out; keep leaves numbers such as 20240105.  [default: asks]",
    )
    id_column: str | None = option(None, metavar="NAME", help=_ID_COLUMN)
    keep_columns: bool = option(False, help=_KEEP_COLUMNS)
    missing: str = option(
        "error",
        choices=MISSING,
        help="Rows with missing values: an error, left out, filled with medians, or compared by "
        "the values that are there (kmeans, relocating, trimmed): ignore, or impute from centers.",
    )
    scale: str | None = option(
        None,
        choices=SCALES,
        help="How columns are scaled; auto chooses for each column.  [default: auto; none with "
        "spherical and on a cluster]",
    )
    init: str | None = option(
        None, help="k-means++, k-means|| (for large data), robust (with outliers) or random."
    )
    n_init: int | None = option(None, minimum=1, help="Number of starts; the best is kept.")
    max_iter: int | None = option(None, minimum=1, help="Maximum number of iterations of a start.")
    tol: float | None = option(None, min=0, help="Stop when the centers move less than this.")
    seed: int = option(0, minimum=0, maximum=LARGEST_SEED, help="Seed of all random numbers.")
    keep: float | None = option(None, help="trimmed: fraction of each cluster that is kept.")
    inverse_temperature: float | None = option(
        None, help="soft, robust: larger (soft) or smaller (robust) values are closer to k-means."
    )
    patience: int | None = option(
        None, minimum=1, help="relocating, medoids: stop after this many tries without gain."
    )
    effort: str | None = option(
        None,
        metavar="NAME",
        help="relocating, medoids, mixture: low, medium, high or best; relocating: also a number "
        "of recombinations.",
    )
    time_limit: float | None = option(
        None, help="relocating: stop after this many seconds; seeding is completed first."
    )
    covariance_type: str | None = option(
        None,
        choices=("full", "tied", "diag", "spherical"),
        metavar="NAME",
        help="mixture: any covariance (full), one for all (tied), axis-parallel (diag), or round "
        "(spherical).",
    )
    size_min: str | None = option(
        None,
        metavar="SIZE",
        help="constrained: fewest rows of a cluster: 100, a fraction 0.1, or one for each cluster, "
        "50,0.2,100.",
    )
    size_max: str | None = option(
        None, metavar="SIZE", help="constrained: most rows of a cluster, in the same way."
    )
    start_from: Path | None = option(
        None, metavar="MODEL", help="Start from the centers of this model."
    )
    checkpoint: Path | None = option(
        None,
        metavar="FILE",
        help="Write the state of the fit to FILE every few iterations; after a break, the same "
        "command resumes from it.",
    )
    cluster: str | None = option(
        None,
        metavar="ADDRESS",
        help="Fit on a Dask cluster, as tcp://scheduler:8786. Its workers read DATA: .parquet, "
        ".npy and .csv files, folders, and patterns in quotes such as 's3://b/*.parquet'.",
    )
    workers: int | None = option(
        None, minimum=1, help="Fit with this number of processes on this machine, which read DATA."
    )
    start_centers: Any = None

    def __post_init__(self) -> None:
        self.table_options()
        if self.select not in CRITERIA:
            raise ValueError(f"--select: found {self.select!r}; pass one of {', '.join(CRITERIA)}")
        if self.algorithm not in algorithm_names():
            raise ValueError(
                f"--algorithm: found {self.algorithm!r}; pass one of {', '.join(algorithm_names())}"
            )
        if self.algorithm == MIXTURE and self.is_on_cluster:
            raise ValueError(
                "--algorithm: found mixture together with workers; mixtures of files are fitted in "
                "one process, leave --cluster and --workers out"
            )
        if self.select == "bic" and self.algorithm != MIXTURE:
            raise ValueError(
                f"--select bic: found --algorithm {self.algorithm}, which has no likelihood; pass "
                f"--algorithm {MIXTURE}"
            )
        if self.clusters is not None:
            parse_clusters(self.clusters)
        for name in ("size_min", "size_max"):
            if (sizes := getattr(self, name)) is not None:
                parse_sizes(name.replace("_", "-"), sizes)
        if self.cluster is not None and self.workers is not None:
            raise ValueError(
                "--workers: found together with --cluster; the workers of a cluster are its own"
            )
        if not self.is_on_cluster:
            check_source(self.data)
        for name in _NOT_ON_CLUSTER if self.is_on_cluster else ():
            value = getattr(self, name)
            if value and (name, value) not in (("missing", "error"), ("scale", "none")):
                by = "--workers" if self.cluster is None else "--cluster"
                raise ValueError(
                    f"{option_of(name)}: not with {by}, whose workers read the data; leave it out"
                )
        # If they are given, `check` refuses them together, whatever the model is.
        if self.start_from is not None and self.init is None and self.n_init is None:
            check_model(self.start_from)

    @property
    def is_on_cluster(self) -> bool:
        """True if workers read the data."""
        return self.cluster is not None or self.workers is not None

    @property
    def scale_method(self) -> str:
        """Method that scales the columns; by default "auto" where that is possible.

        A fit that starts from a model has its scaling ("model"). Rows that are compared by their
        directions are not scaled, as moving columns turns them.
        """
        if self.scale is not None:
            return self.scale
        if self.start_from is not None:
            return "model"
        return "none" if self.is_on_cluster or self.model(1).compares_directions else "auto"

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
        values = {name: getattr(self, name) for name in _PARAMETERS}
        if self.effort is not None and re.fullmatch(r"-?\d{1,19}", self.effort, re.ASCII):
            values["effort"] = int(self.effort)
        for name in ("size_min", "size_max"):
            if values[name] is not None:
                values[name] = parse_sizes(name.replace("_", "-"), values[name])
        if self.missing in KEPT:
            values["missing"] = self.missing
        values["random_state"] = self.seed
        values["checkpoint"] = None if self.checkpoint is None else str(self.checkpoint)
        # Given centers are one start; more would repeat it.
        if self.start_centers is not None:
            values |= {"init": self.start_centers, "n_init": 1}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def printable_parameters(self) -> dict[str, Any]:
        """`parameters` as JSON: the word "centers" replaces an array."""
        return {
            name: value if isinstance(value, int | float | str | list) else "centers"
            for name, value in self.parameters.items()
        }

    def model(self, n_clusters: int, **more: Any) -> "AnyClusterer":
        """Return a new estimator; `more` are parameters where the user gave none."""
        from lloydformer.estimators.base import Clusterer, with_typical_tolerance

        model = estimator_of(self.algorithm)(n_clusters, **{**more, **self.parameters})
        # mixtures stop by their likelihood
        return with_typical_tolerance(model) if isinstance(model, Clusterer) else model

    def check(self) -> None:
        """Raise ValueError for values that are not allowed, and options that do not go together."""
        from lloydformer.estimators.parameter_checks import find_invalid_parameter

        # Before a model is made, which would raise a TypeError for a parameter that it lacks.
        known = estimator_of(self.algorithm)().get_params()
        for name in self.parameters:
            if name not in known:  # only now are the other algorithms imported
                having = [a for a in algorithm_names() if name in estimator_of(a)().get_params()]
                raise ValueError(
                    f"{option_of(name)}: {self.algorithm} does not have this option; leave it "
                    f"out, or choose --algorithm {' or '.join(having)}"
                )
        if (invalid := find_invalid_parameter(self.model(1))) is not None:
            name, value, allowed = invalid
            raise ValueError(
                f"{option_of(name)}: found {value!r}; pass {_describe_constraints(value, allowed)}"
            )
        if self.scale is not None and self.scale not in SCALES:
            raise ValueError(f"--scale: found {self.scale!r}; pass one of {', '.join(SCALES)}")
        if self.start_from is not None and not (self.init is None and self.n_init is None):
            raise ValueError(
                "--start-from: found together with --init or --n-init; pass only one of them"
            )


@dataclass(frozen=True, kw_only=True)
class PredictSettings(TableSettings):
    """The settings of `lloydformer predict`: each field is an option of the command.

    `missing` is None for what the fit did.
    """

    model: Path = option(
        dataclasses.MISSING, metavar="MODEL", help="A folder that fit wrote, or a saved model."
    )
    data: str = option(dataclasses.MISSING, metavar="DATA", help="New rows; formats as for fit.")
    output: Path | None = option(
        None, flag="-o", metavar="FILE", help="Output file.  [default: NAME-labels.csv]"
    )
    columns: str | None = option(
        None,
        metavar="a,b,c",
        help="Columns in place of those of the fit, in their order, if the data have no names.",
    )
    id_column: str | None = option(
        None, metavar="NAME", help=f"{_ID_COLUMN}  [default: as in the fit]"
    )
    keep_columns: bool = option(False, help=_KEEP_COLUMNS)
    missing: str | None = option(
        None,
        choices=MISSING,
        help="Rows with missing values, or with words that the fit did not see.  "
        "[default: as in the fit]",
    )
    force: bool = option(False, help="Replace the file if it exists.")

    def __post_init__(self) -> None:
        self.table_options()
        check_model(self.model)
        check_source(self.data)

    @property
    def path(self) -> Path:
        """The file of labels; by default it has the name of the data."""
        return self.output or Path(f"{data_name(self.data)}-labels.csv")


def estimator_of(algorithm: str) -> "type[AnyClusterer]":
    """Return the estimator of an algorithm."""
    if algorithm == LEARNED and algorithm not in ALGORITHMS:
        from lloydformer.learning.estimator import LearnedKMeans

        return LearnedKMeans
    if algorithm == MIXTURE and algorithm not in ALGORITHMS:
        from lloydformer.estimators.mixture import GaussianMixture

        return GaussianMixture
    return ALGORITHMS[algorithm].estimator


def option_of(parameter: str) -> str:
    """Return the command-line option that sets a parameter of an estimator."""
    return "--seed" if parameter == "random_state" else f"--{parameter.replace('_', '-')}"


def _describe_constraints(value: object, allowed: list[Any]) -> str:
    """Describe the constraints of a parameter for a user who passed `value`.

    >>> from numbers import Integral, Real
    >>> from lloydformer.estimators.parameter_checks import Interval, StrOptions
    >>> _describe_constraints(3.0, [Interval(Real, 0, 1, closed="right")])
    'a number above 0 and at most 1'
    >>> _describe_constraints("x", [StrOptions({"low", "high"}), Interval(Integral, 0, 9, closed="both")])
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
    # fsspec chains protocols by "::", and the file is named by the last one.
    names = [name for name in pattern.rpartition("::")[2].split("/") if name]
    plain = [name for name in names if not any(sign in name for sign in "*?[:")]
    return Path(plain[-1]).stem if plain else "data"
