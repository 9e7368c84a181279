"""`lloydformer predict`: the clusters of new rows, by a model that was saved."""

from pathlib import Path
from typing import Annotated

import typer

from lloydformer.cli.fitted import about, print_clusters, split, stopping
from lloydformer.cli.terminal import print_json, refuse_to_overwrite, stdout, working
from lloydformer.jobs.fit.found import assigned
from lloydformer.jobs.fit.labels import check_kind, write_labels
from lloydformer.jobs.fit.matching import opened_for, saved_model
from lloydformer.storage.atomic import check_apart, check_writable, replacing


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The folder that fit has written, or its model.")
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="New rows, as for fit.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Where the labels go.  [default: NAME-labels.csv]",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="a,b,c", help="Columns, where the data have no names to find them by."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Label the rows of DATA with a saved MODEL.

    Columns are found by the names that the model was fitted on, and scaled as they were then. The
    file, .csv or .parquet, has row (from 1), cluster and distance from the center.
    """
    path = output or Path(f"{Path(data).resolve().stem}-labels.csv")
    kind = path.suffix.removeprefix(".")
    check_kind(kind, f"--output {path}")
    check_apart(path, data)
    refuse_to_overwrite(path, force)
    check_writable(path)
    with stopping(), working("labelling"):
        loaded = saved_model(model)
        blocks = opened_for(loaded, data, split(columns))
        with about(data):
            assignment = assigned(loaded, blocks)
        with replacing(path) as file:
            write_labels(file, kind, assignment)
    k = len(loaded.cluster_centers_)
    sizes, distances = (part.tolist() for part in (assignment.counted(k), assignment.means(k)))
    if json:
        rows = {str(j): {"size": sizes[j], "mean_distance": distances[j]} for j in range(k)}
        return print_json({"model": str(model), "data": data, "n": blocks.n_rows,
                           "labels": str(path), "clusters": rows})  # fmt: skip
    print_clusters(sizes, distances, blocks.n_rows)
    stdout.print(f"\nlabels: {path}", markup=False, soft_wrap=True)
    return None
