"""`lloydformer fit --cluster` and `--workers`: what it refuses, and what it prints."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lloydformer.cli.fit_words import fit_progress, print_clusters, print_files, report_interrupt
from lloydformer.cli.terminal import print_json, stderr, stdout, working
from lloydformer.jobs.fit.settings import FitSettings, numbers_of_clusters
from lloydformer.jobs.fit.words import counted, plain

if TYPE_CHECKING:
    from lloydformer.data.table_options import TableOptions
    from lloydformer.jobs.fit.outputs import FitOutputs


def check_for_cluster(address: str | None, n_workers: int | None, refused: dict[str, Any]) -> None:
    """Raise ValueError for options that do not go together with a cluster.

    refused: values of options that must not be given.
    """
    if address is not None and n_workers is not None:
        raise ValueError(
            "--workers: found together with --cluster; the workers of a cluster are its own"
        )
    option = "--workers" if address is None else "--cluster"
    for name, value in refused.items():
        if value:
            raise ValueError(
                f"{name}: not with {option}, whose workers read the data; leave it out"
            )


def default_folder(data: str) -> Path:
    """The output folder for a file, a folder or a pattern.

    >>> default_folder("s3://place/data/*.parquet"), default_folder("points.csv")
    (PosixPath('data-clusters'), PosixPath('points-clusters'))
    """
    names = [name for name in data.rpartition("::")[2].split("/") if name]
    named = [name for name in names if not any(sign in name for sign in "*?[:")]
    return Path(f"{Path(named[-1]).stem if named else 'data'}-clusters")


def fit_on_cluster(
    data: str, clusters: str | None, settings: FitSettings, table: "TableOptions",
    outputs: "FitOutputs", where: tuple[str | None, int | None], command: str, *, json: bool,
) -> None:  # fmt: skip
    """Run the fit and print its result; where: an address, or a number of processes."""
    from lloydformer.jobs.fit.cluster import ClusterFitJob, connected

    if clusters is None:
        raise ValueError("-k: missing; with a cluster pass one number, such as -k 8")
    numbers = numbers_of_clusters(clusters)
    if len(numbers) > 1:
        raise ValueError(
            f"-k: found {clusters}; with a cluster pass one number; choose k on a sample first, "
            "without --cluster and --workers"
        )
    outputs.check(data)
    job = ClusterFitJob(data, numbers[0], settings, table, outputs, command)
    with connected(*where) as client, report_interrupt():
        if stderr.is_terminal:
            stderr.print(f"dashboard: {client.dashboard_link}")
        with fit_progress(numbers) as (callback, _), working("reading"):
            model, totals, summary = job.run(client, callback)
    if json:
        return print_json(summary)
    left_out = None if totals.left_out is None else totals.left_out.tolist()
    print_clusters(totals.sizes.tolist(), totals.mean_distances, totals.n_rows, left_out)
    speed = float(f"{summary['points_per_second']:.3g}")
    stdout.print(f"\nobjective {plain(model.inertia_, 6)}")
    stdout.print(
        f"{counted(model.n_iter_, 'iteration')}, {summary['seconds']:.2f} s, {speed:,.0f} points/s"
    )
    return print_files(outputs)
