"""The HTML page of a fit: sizes, map, silhouettes, profiles, centers, far rows, settings."""

import numpy as np
import torch

from lloydformer.jobs.fit import pictures
from lloydformer.jobs.fit.outputs import versions
from lloydformer.jobs.fit.profiles import Profiles, ShownRows
from lloydformer.jobs.fit.request import FitRequest
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.runs import FitRuns
from lloydformer.jobs.fit.words import counted, plain
from lloydformer.plots.palette import cluster_colour
from lloydformer.report import Part, code, heading, literal, page, profile, section, table, text

MAX_FAR = 20
"""Rows listed in the table of farthest rows."""
MAX_COLUMNS = 60
"""Columns shown in the tables of centers and rows."""
_ROUNDING = 1e-12
"""Coordinates that are smaller, compared with the largest of their column, are shown as 0."""
MAX_TRAITS = 6
"""Columns shown in the profile of a cluster."""


def fit_page(request: FitRequest, runs: FitRuns, result: FitResult) -> str:
    """A self-contained HTML page."""
    title = f"{counted(result.n_clusters, 'cluster')} of {request.data}"
    parts = [heading(literal(title), level=1), text(*_lead(request, result), lead=True)]
    parts += _remarks(runs)
    if len(runs.done) > 1:
        parts += [
            heading("The number of clusters"),
            section(*pictures.over_numbers_of_clusters(runs, result), kind="columns"),
        ]
    inside = [] if result.silhouette is None else [pictures.silhouettes(result)]
    shown = [
        pictures.sizes(result),
        pictures.map_of_sample(result),
        *inside,
        pictures.objective(result),
    ]
    parts += [heading("The clusters"), section(*shown, kind="columns")]
    parts += [heading("Profiles"), *_profiles(result)]
    parts += [heading("Centers"), *_centers(result)]
    parts += [heading("Farthest rows"), *_far(result)]
    parts += [heading("Settings"), *_settings(request, result), code(request.command)]
    return page(title, parts)


def _lead(request: FitRequest, result: FitResult) -> list[str]:
    n, d = result.blocks.n_rows, result.blocks.n_features
    most = ", the most allowed," if result.reached_max_iter else ","
    words = (
        f"{counted(n, 'row')} with {counted(d, 'column')}, clustered by "
        f"**{request.settings.algorithm}**: objective **{plain(result.model.inertia_, 6)}** after "
        f"{counted(result.model.n_iter_, 'iteration')}{most} in {plain(result.seconds, 2)} seconds."
    )
    if result.silhouette is None:
        return [words]
    return [f"{words} Mean silhouette of a sample of {len(result.sampled[0]):,} rows: "
            f"**{result.silhouette:.2f}**."]  # fmt: skip


def _remarks(runs: FitRuns) -> list[Part]:
    notes = [text(f"Note: {literal(note)}") for note in runs.notes]
    advice = [text(f"**Advice:** {literal(line)}") for line in runs.advice]
    return [section(*advice, *notes, kind="notes")] if notes or advice else []


def _profiles(result: FitResult) -> list[Part]:
    """A card for each cluster, and the row nearest to each center."""
    found = Profiles(result)
    drawn = pictures.drawn_clusters(result)
    made = [found.profile(j) for j in drawn]
    rest = result.n_clusters - len(drawn)
    more = f" The {len(drawn)} largest clusters are shown." if rest else ""
    cards = [
        profile(
            f"Cluster {p.number}", cluster_colour(p.number), literal(p.sentence()),
            [(literal(t.column), plain(t.mean), plain(t.overall), t.z)
             for t in p.traits[:MAX_TRAITS]],
        )
        for p in made
    ]  # fmt: skip
    words = (
        "The columns that set each cluster apart, most striking first. The z-score is the "
        "difference between the mean of the cluster and that of all rows, in standard deviations "
        f"of all rows.{more}"
    )
    typical = {p.number: p.typical for p in made if p.typical is not None}
    rows = ShownRows(result, list(typical.values()))
    return [text(words), section(*cards, kind="columns"),
            text("The most typical row of each cluster, which is nearest to its center:"),
            _rows_table(rows, {row: [str(j)] for j, row in typical.items()}, ["cluster"])
            ]  # fmt: skip


def _rows_table(rows: ShownRows, before: dict[int, list[str]], names: list[str]) -> Part:
    """Rows with what is known of each before its values."""
    columns = rows.columns[: MAX_COLUMNS + 2]
    return table(
        [*names, *map(literal, columns)],
        [[*before[row], *map(literal, rows.cells(row)[: len(columns)])] for row in rows.rows],
    )


def _centers(result: FitResult) -> list[Part]:
    names = [literal(name) for name in result.columns[:MAX_COLUMNS]]
    rest = len(result.columns) - len(names)
    more = f" The first {len(names)} of {len(result.columns)} columns are shown." if rest else ""
    found = np.asarray(result.model.cluster_centers_)[:, :MAX_COLUMNS]
    rounded = np.where(np.abs(found) < _ROUNDING * np.abs(found).max(axis=0), 0.0, found)
    centers = rounded.tolist()
    rows = [[str(j), f"{result.sizes[j]:,}", *(plain(value) for value in center)]
            for j, center in enumerate(centers)]  # fmt: skip
    words = f"In the units of the data.{more} `centers.csv` has all digits."
    return [text(words), table(["cluster", "size", *names], rows)]


def _far(result: FitResult) -> list[Part]:
    """The rows farthest from their centers; if rows were left out, the farthest of those."""
    clusters, away, out = (getattr(result.assignment, name)
                           for name in ("clusters", "distances", "left_out"))  # fmt: skip
    ranked = away if out is None else torch.where(out, away, -1.0)
    count = min(MAX_FAR, len(away) if out is None else int(out.sum()))
    if count == 0:
        return [text("No row was left out.")]
    far = ranked.topk(count).indices.tolist()
    which = f"The {count} rows farthest from their centers"
    if out is not None:
        which = f"{count} of the {int(out.sum()):,} rows left out, farthest first"
    measure = "1 - cosine" if result.model.compares_directions else "distance"
    scaled = "; distances are in scaled units" if result.blocks.scaling is not None else ""
    words = f"{which}. Rows are counted from 1{scaled}."
    before = {row: [str(int(clusters[row])), plain(away[row].item())] for row in far}
    return [text(words), _rows_table(ShownRows(result, far), before, ["cluster", measure])]


def _settings(request: FitRequest, result: FitResult) -> list[Part]:
    made = result.model.get_params()
    shown = {name: made[name] for name in ("n_init", "max_iter", "tol") if name in made}
    settings = {
        "data": literal(request.data), "algorithm": request.settings.algorithm,
        "k": result.n_clusters, "scale": request.scale or "none",
        "missing values": request.table.missing, **shown, **request.start_settings.printable,
    }  # fmt: skip
    made_with = ", ".join(f"{name} {number}" for name, number in versions().items())
    rows = [[str(name), str(value)] for name, value in settings.items()]
    return [text(f"Made with {made_with}."), table(["setting", "value"], rows)]
