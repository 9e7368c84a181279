"""sec:methods:new:robust: what the text says of outliers and of k-medoids, and does not measure.

Gaussian clusters with a share of outliers, uniform in a wider box; every column is scaled to
[0, 1], as the text's data sets are. All algorithms start from the true means, so that the error of
the centers is due to their update and not to the start.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.algorithms.contract import Algorithm, squared_distances
from lloydformer.estimators import KMedoids
from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.verdict import (
    Answer,
    Verdict,
    beyond,
    claim,
    judge,
    judge_less,
    standard_error,
    worst_of,
)

LABEL = "outliers"
# Sizes were chosen by hand: clusters overlap little, so that the true means are what a clustering
# without outliers finds.
N_POINTS, N_CLUSTERS, SPREAD, BOX, N_STEPS = 500, 5, 0.05, 3.0, 10
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2)
# The share at which thresholds and temperatures are varied, and the points that a right one keeps.
VARIED = 0.1
KEPT = (0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 1.0)
GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
LLOYD = "Lloyd's"
# The paper's columns of tab:rob-res.
METHODS: Mapping[str, Algorithm] = {
    LLOYD: algorithms.Lloyd(),
    "trimmed, τ = 0.95": algorithms.Trimmed(keep=0.95),
    "trimmed, τ = 0.99": algorithms.Trimmed(keep=0.99),
    "robust, γ = 0.01": algorithms.Robust(inverse_temperature=0.01),
    "robust, γ = 0.001": algorithms.Robust(inverse_temperature=0.001),
}
ROBUST = ("robust, γ = 0.01", "robust, γ = 0.001")
# 'Significantly influenced': the error is more than this many times that of the best threshold.
# 'Weighs low': less than half of the weight of other points. Both were chosen by hand.
SIGNIFICANT, LOW = 2.0, 0.5


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return the pieces: shares of outliers, thresholds and temperatures, and k-medoids."""
    count = scope.count(quick=40, full=400)
    return {
        "shares": partial(measure_shares, count, scope.seed),
        "thresholds": partial(measure_thresholds, count, scope.seed),
        "medoids": partial(measure_medoids, count, scope.seed),
    }


def draw_problem(
    seed: int, trial: int, share: float
) -> tuple[Float[ndarray, "n d"], Float[ndarray, "k d"], int]:
    """Return points, true means and the number of outliers, which are the last points."""
    rng = np.random.default_rng([seed, trial])  # the same clusters for every share
    angles = 2 * np.pi * (np.arange(N_CLUSTERS) + rng.uniform()) / N_CLUSTERS
    means = 0.5 + 0.35 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inliers = np.repeat(means, N_POINTS // N_CLUSTERS, axis=0)
    inliers = inliers + SPREAD * rng.normal(size=inliers.shape)
    n_outliers = round(share * N_POINTS)
    outliers = 0.5 + BOX * rng.uniform(-0.5, 0.5, size=(n_outliers, 2))
    points = np.concatenate([inliers, outliers])
    low, high = points.min(axis=0), points.max(axis=0)
    return (points - low) / (high - low), (means - low) / (high - low), n_outliers


def center_error(algorithm: Algorithm, points: ndarray, means: ndarray, outliers: int) -> float:
    """Return the root mean square distance of the centers to the true means, in clusters.

    The unit is the root mean square distance of an inlier to its mean, which the scaling of the
    columns changes with the outliers.
    """
    centers = algorithms.run(algorithm, points, means, N_STEPS).centers[-1]
    inliers = points[: len(points) - outliers]
    own = np.repeat(means, N_POINTS // N_CLUSTERS, axis=0)
    radius = np.sqrt(np.square(inliers - own).sum(axis=1).mean())
    return float(np.sqrt(np.square(centers - means).sum(axis=1).mean()) / radius)


def measure_shares(count: int, seed: int) -> Record:
    """Return the mean error of each method for each share of outliers, and beyond that of Lloyd.

    weights: the mean weight of an outlier in its cluster, as a part of an inlier's, at VARIED.
    """
    rows: Record = {}
    for share in SHARES:
        problems = [draw_problem(seed, trial, share) for trial in range(count)]
        errors = {
            name: np.array([center_error(method, *problem) for problem in problems])
            for name, method in METHODS.items()
        }
        rows[str(share)] = {name: _summarise(e, errors[LLOYD]) for name, e in errors.items()}
    problems = [draw_problem(seed, trial, VARIED) for trial in range(count)]
    weights = {name: _relative_weight(METHODS[name], problems) for name in ROBUST}
    return {"rows": rows, "weights": weights}


def measure_thresholds(count: int, seed: int) -> Record:
    """Return the errors of trimmed k-means by threshold and of robust k-means by temperature."""
    problems = [draw_problem(seed, trial, VARIED) for trial in range(count)]

    def errors(method: Algorithm) -> ndarray:
        return np.array([center_error(method, *problem) for problem in problems])

    lloyd = errors(algorithms.Lloyd())
    by_kept = {str(kept): errors(algorithms.Trimmed(keep=kept)) for kept in KEPT}
    by_gamma = {str(g): errors(algorithms.Robust(inverse_temperature=g)) for g in GAMMAS}
    return {
        "lloyd": _summarise(lloyd, lloyd),
        "kept": {name: _summarise(e, lloyd) for name, e in by_kept.items()},
        "gammas": {name: _summarise(e, lloyd) for name, e in by_gamma.items()},
        "weights": {
            str(g): _relative_weight(algorithms.Robust(inverse_temperature=g), problems)
            for g in GAMMAS
        },
    }


def _summarise(errors: ndarray, lloyd: ndarray) -> Record:
    """Return the mean, the difference to Lloyd's, and the standard error of that difference."""
    away = errors - lloyd
    means = {"mean": errors.mean(), "difference": away.mean()}
    return {key: round(float(value), 5) for key, value in means.items()} | {
        "error": standard_error(away)
    }


def _relative_weight(method: Algorithm, problems: Sequence[tuple[ndarray, ndarray, int]]) -> float:
    """Return the mean weight of outliers as a part of that of inliers, in the first iteration."""
    outside, inside = [], []
    for points, means, n_outliers in problems:
        assignments = method.assign(points, means)
        # each point's weight for its own center, as a part of the mean weight of that cluster
        weights = method.weigh(points, means, assignments, 0)
        own = weights[assignments.argmax(axis=1), np.arange(len(points))]
        own = own * assignments.sum(axis=0)[assignments.argmax(axis=1)]
        inside.append(own[: len(points) - n_outliers].mean())
        outside.append(own[len(points) - n_outliers :].mean())
    return round(float(np.mean(outside) / np.mean(inside)), 4)


def measure_medoids(count: int, seed: int) -> Record:
    """Return k-medoids by alternation, as Lloyd's algorithm would, and by exchanges.

    From the same random points. alternating, exchanges: the mean objective, as a part of the
    lower of both. below: the mean difference and its standard error.
    """
    found = []
    for trial in range(count):
        points, _, _ = draw_problem(seed, trial, 0.0)  # outliers would make alternation worse
        rng = np.random.default_rng([seed, trial, 1])
        start = rng.choice(len(points), size=2 * N_CLUSTERS, replace=False)
        alternating = alternate_medoids(points, start)
        model = KMedoids(2 * N_CLUSTERS, init=points[start], random_state=trial)
        found.append((alternating, float(model.fit(points).inertia_)))
    values = np.array(found)
    relative = values / values.min(axis=1, keepdims=True)
    below = relative[:, 1] - relative[:, 0]
    return {
        "alternating": round(float(relative[:, 0].mean()), 5),
        "exchanges": round(float(relative[:, 1].mean()), 5),
        "below": [round(float(below.mean()), 5), standard_error(below)],
        "n_trials": count,
    }


def alternate_medoids(points: Float[ndarray, "n d"], start: ndarray) -> float:
    """Return the objective of eq:kmeds after alternating assignment and medoid until both stay.

    A new medoid is the point of the cluster that is nearest to the others of it.
    """
    squares, medoids = squared_distances(points, points), start.copy()
    while True:  # the objective falls in each turn, and there are finitely many sets of medoids
        labels = squares[:, medoids].argmin(axis=1)
        moved = medoids.copy()
        for j in range(len(medoids)):
            own = np.flatnonzero(labels == j)
            moved[j] = own[squares[np.ix_(own, own)].sum(axis=0).argmin()]
        if (moved == medoids).all():
            return float(squares[:, medoids].min(axis=1).sum())
        medoids = moved


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return a row for each share of outliers, the curves, and both searches of medoids."""
    return {
        "rows": outputs["shares"]["rows"],
        "weights": outputs["shares"]["weights"],
        "curves": outputs["thresholds"],
        "medoids": outputs["medoids"],
    }


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on the sentences about robustness and k-medoids, and on temperatures."""
    rows = {share: row for share, row in result["rows"].items() if float(share)}
    curves, medoids = result["curves"], result["medoids"]
    kept = {name: one["mean"] for name, one in curves["kept"].items()}
    gammas = {name: one["mean"] for name, one in curves["gammas"].items()}
    best = min(kept, key=kept.__getitem__)
    best_gamma = min(gammas, key=gammas.__getitem__)
    below = [row[name] for row in rows.values() for name in ROBUST]
    described = "; ".join(
        f"{float(share):.0%} outliers: {row[LLOYD]['mean']:.3f} for Lloyd's, "
        + ", ".join(f"{row[name]['mean']:.3f} ({name.removeprefix('robust, ')})" for name in ROBUST)
        for share, row in rows.items()
    )
    low = [weight < LOW for weight in curves["weights"].values()]
    weights = ", ".join(f"{w:.2f} (γ = {g})" for g, w in curves["weights"].items())
    return [
        claim(
            "outliers.more-robust",
            f"error of the centers, in radii of a cluster: {described}",
            worst_of(*(judge_less(one["difference"], one["error"]) for one in below)),
        ),
        claim(
            "outliers.threshold",
            f"with {VARIED:.0%} outliers: {kept[best]:.3f} for τ = {best}, {kept['0.99']:.3f} for "
            f"τ = 0.99, {kept['0.5']:.3f} for τ = 0.5; Lloyd's {curves['lloyd']['mean']:.3f}",
            judge(kept["0.99"] > SIGNIFICANT * kept[best]),
        ),
        claim(
            "outliers.weighs-low",
            f"an outlier's weight as a part of another point's: {weights}",
            # the text does not say for which temperatures
            judge(all(low)) if len(set(low)) == 1 else Answer.OPEN,
        ),
        claim(
            "outliers.medoids",
            f"alternation ends {medoids['alternating'] - 1:.1%} above the better of both, "
            f"exchanges {medoids['exchanges'] - 1:.1%}, on average over {medoids['n_trials']} "
            "problems",
            judge_less(*medoids["below"]),
        ),
        beyond(
            "outliers.temperature",
            f"with {VARIED:.0%} outliers: {gammas[best_gamma]:.3f} for γ = {best_gamma}, "
            f"{gammas['0.01']:.3f} for γ = 0.01 and {gammas['0.001']:.3f} for γ = 0.001 of "
            f"tab:rob-res; trimmed k-means at its best {kept[best]:.3f}",
        ),
    ]


def tables(result: Record) -> Sequence[TextTable]:
    """Return the errors by share of outliers."""
    return [
        TextTable(
            "Distance of the centers to the true means, in radii of a cluster (root mean square)",
            ["outliers", *METHODS],
            [
                [f"{float(share):.0%}", *(f"{row[name]['mean']:.3f}" for name in METHODS)]
                for share, row in result["rows"].items()
            ],
        )
    ]


def pictures(result: Record) -> Sequence[Picture]:
    """Return one figure: the error by share of outliers, by threshold, and by temperature."""
    from matplotlib.figure import Figure

    from lloydformer.plots.axes import open_frame
    from lloydformer.plots.palette import CLUSTERS, INK

    figure = Figure(figsize=(11, 3.4), layout="constrained")
    shares, thresholds, temperatures = figure.subplots(1, 3)
    percents = [100 * float(share) for share in result["rows"]]
    for number, name in enumerate(METHODS):
        means = [row[name]["mean"] for row in result["rows"].values()]
        shares.plot(percents, means, "o-", markersize=4, color=CLUSTERS[number], label=name)
    shares.set(xlabel="outliers, %", ylabel="error of the centers, in radii")
    shares.legend(fontsize=8)
    curves = result["curves"]
    for ax, key, words in (
        (thresholds, "kept", "τ of trimmed k-means"),
        (temperatures, "gammas", "γ of robust k-means"),
    ):
        places = [float(place) for place in curves[key]]
        means = [one["mean"] for one in curves[key].values()]
        ax.plot(places, means, "o-", markersize=4, color=CLUSTERS[0])
        ax.axhline(curves["lloyd"]["mean"], color=INK, linestyle="--", linewidth=1)
        ax.set(xlabel=words)
    temperatures.set_xscale("log")
    for ax, letter in zip((shares, thresholds, temperatures), "ABC", strict=True):
        ax.set_title(letter, loc="left", weight="bold")
        open_frame(ax)
    caption = (
        "(A) The error of the centers by the share of outliers. With "
        f"{VARIED:.0%} of them: (B) by the threshold of trimmed k-means, (C) by the temperature of "
        "robust k-means; dashed: Lloyd's algorithm. Means over the trials."
    )
    return [Picture(LABEL, figure, caption)]
