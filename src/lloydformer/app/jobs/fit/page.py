"""The HTML page of a fit: that of `lf.report`, with the data, notes and numbers tried."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from markupsafe import Markup, escape

from lloydformer.app.jobs.fit.outputs import versions
from lloydformer.app.jobs.fit.result import FitResult
from lloydformer.app.jobs.fit.scale_notes import describe_scales
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.plots.curves import criterion_curve
from lloydformer.plots.report.clusters import clusters_page, describe_fit, new_axes, show_axes
from lloydformer.profiles.other_columns import read_other_columns
from lloydformer.profiles.words import format_count

# Columns that were not clustered get a profile, too: so many, of so many texts together, since
# reading 4 million texts takes some seconds. Chosen by hand.
_MOST_COLUMNS, _MOST_TEXTS = 20, 1 << 22
_RULES = {
    "auto": "has the best one",
    "silhouette": "has the best one",
    "bic": "has the smallest one",
    "calinski-harabasz": "has the largest index",
    "gap": "is the smallest within a standard error of the largest gap",
    "stability": "is the largest with nearly the best agreement between random subsets",
}


def fit_page(settings: FitSettings, command: str, result: FitResult) -> str:
    """Return a self-contained HTML page."""
    defaults = result.model.get_params()
    parameters = {
        "data": escape(settings.data),
        "algorithm": settings.algorithm,
        "k": str(result.n_clusters),
        "scale": escape(
            describe_scales(settings.scale_method, result.columns, result.table.choices)
        ),
        "missing values": settings.missing,
        **{name: str(defaults[name]) for name in ("n_init", "max_iter", "tol") if name in defaults},
        **{name: str(value) for name, value in settings.printable_parameters.items()},
    }
    scaled = "; distances are in scaled units" if result.blocks.scaling is not None else ""
    others, names_of_rows = read_other_columns(read_left_out(result), result.blocks.n_rows)
    return clusters_page(
        replace(result.clustering, others=others, left_out_columns=names_of_rows),
        title=f"{format_count(result.n_clusters, 'cluster')} of {settings.data}",
        parameters=parameters,
        fit_words=describe_fit(result.clustering, settings.algorithm, result.seconds),
        command=command,
        versions=versions(),
        certainty=result.evidence.sentence if result.evidence is not None else "",
        advice=result.advice,
        notes=result.notes,
        runs=draw_runs(settings.select, result) if len(result.runs) > 1 else [],
        centers_note=Markup("<code>centers.csv</code> has all digits."),
        rows_note=f"Rows are counted from 1{scaled}.",
    )


def draw_runs(select: str, result: FitResult) -> list[Markup]:
    """Draw objective, silhouette and the criterion over the numbers of clusters."""
    runs, chosen = result.runs, result.n_clusters
    falls = "Objective: it falls as k grows; after a bend, more clusters help less."
    criterion = runs[0].criterion_name
    title = "BIC" if criterion == "bic" else criterion.capitalize()
    rule = f"k = {chosen} {_RULES[select]}"
    if select == "auto" and chosen == 1:  # which has no score
        rule = "k = 1 was chosen, as there is no evidence of clusters,"
    choice = f"{title}: {rule} and is shown on this page."
    about = choice if select == "silhouette" else "Silhouette: the larger, the better separated."
    curves: list[tuple[str, str, Sequence[float | None], str]] = [
        ("Objective", "objective", [run.objective for run in runs], falls),
        ("Silhouette", "mean silhouette", [run.silhouette for run in runs], about),
    ]
    if select != "silhouette":
        curves.insert(0, (title, criterion, [run.value for run in runs], choice))
    figures = []
    for name, label, values, words in curves:
        curve = criterion_curve([run.k for run in runs], values, label, chosen, new_axes())
        figures.append(show_axes(curve, words, f"{name} for each number of clusters"))
    return figures


def read_left_out(result: FitResult) -> dict[str, np.ndarray]:
    """Return the columns of the table that were not clustered: numbers, dates or words."""
    table = result.table
    source = table.source
    used = {feature.column for feature in table.conversion.features} | {table.id_column}
    n_rows = result.blocks.n_rows + len(table.dropped)
    places = [i for i in range(source.width) if source.label(i) not in used]
    places = places[: min(_MOST_COLUMNS, _MOST_TEXTS // n_rows)]
    if not places:
        return {}
    parts = list(table.texts(places))
    kept = np.setdiff1d(np.arange(n_rows), table.dropped)
    return {
        source.label(i): _parse_texts(np.concatenate([part[j] for part in parts])[kept])
        for j, i in enumerate(places)
    }


def _parse_texts(texts: np.ndarray) -> np.ndarray:
    """Return texts as numbers or ISO dates, if all of them are; empty ones are missing."""
    filled = np.where(texts == "", "nan", texts)
    for kind, values in (("f8", filled), ("M8[s]", np.where(texts == "", "NaT", texts))):
        try:
            return values.astype(kind)
        except ValueError:
            continue
    return np.array([text or None for text in texts], dtype=object)
