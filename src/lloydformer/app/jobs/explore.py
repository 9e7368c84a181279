"""The state that `lloydformer explore` begins with: a recipe, and points of a file."""

from typing import Any, cast

import numpy as np
import torch

from lloydformer.app.jobs.explore_settings import ExploreSettings
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes import MAKERS
from lloydformer.circuits.serialise import serialise
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.data.column_scales import Scale
from lloydformer.data.sources import OpenedTable, open_table, scale_columns, to_blocks

# Rows that the page shows. Chosen by hand: the browser computes self-attention, which takes time in
# proportion to their square, after every change of a part.
MOST_POINTS = 500


def is_live(recipe: AnyRecipe) -> bool:
    """Return True if the page can run the recipe; others are shown as recorded traces."""
    return isinstance(recipe, Recipe) and not recipe.free


def recipe_state(name: str) -> dict[str, Any]:
    """Return the recipe of this name as JSON; raise ValueError if the page cannot run it."""
    live = [each for each, make in MAKERS.items() if is_live(make())]
    if name not in live:
        raise ValueError(f"--recipe: found {name!r}; pass one of {', '.join(live)}")
    return {"recipe": serialise(MAKERS[name]())}


def data_state(settings: ExploreSettings, seed: int = 0) -> tuple[dict[str, Any], OpenedTable]:
    """Return points of a file and initial centers, and the opened file.

    Rows of a large file are drawn at random. Centers are distinct rows where there are enough.
    """
    assert settings.data is not None
    table = open_table(settings.data, settings.table_options())
    scaling = None
    if settings.scale not in (None, "none"):
        scaling = scale_columns(table, cast("Scale", settings.scale))
    blocks = to_blocks(table, scaling)
    rng, n_rows, n_clusters = np.random.default_rng(seed), blocks.n_rows, settings.clusters or 3
    chosen = np.sort(rng.choice(n_rows, size=min(MOST_POINTS, n_rows), replace=False))
    rows = blocks.points[torch.from_numpy(chosen)].double()  # not centered
    if blocks.scaling is not None:
        rows = blocks.scaling.from_data(rows)
    points = rows.numpy()
    if n_clusters > len(points):
        raise ValueError(
            f"--clusters: found {n_clusters} for {len(points)} rows; use at most one per row"
        )
    # Rows in random order, the first of each value before its copies.
    order = rng.permutation(len(points))
    _, first = np.unique(points[order], axis=0, return_index=True)
    later = np.setdiff1d(np.arange(len(points)), first)
    centers = points[order[np.concatenate([np.sort(first), later])[:n_clusters]]]
    return {"points": points.tolist(), "centers": centers.tolist()}, table
