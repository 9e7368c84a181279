"""A fit on a Dask cluster: its workers read ranges of the files; no row comes to this process."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from lloydformer.app.jobs.fit import outputs
from lloydformer.app.jobs.fit.job import describe_error
from lloydformer.app.jobs.fit.label_file import write_label_chunks
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.app.jobs.text_values import parse_clusters
from lloydformer.data.column_choice import choose_by_name
from lloydformer.data.file_ranges import FileRange, find_files, read_range, split_file
from lloydformer.data.storage.atomic_folders import atomic_folder
from lloydformer.data.table_options import TableOptions
from lloydformer.engines.dask.transport import ClusterError, Waiting
from lloydformer.estimators.base import Clusterer
from lloydformer.numerics.checks import ArgumentError
from lloydformer.profiles.assignment import ClusterTotals

# To wait for a scheduler, and for its first worker. Chosen by hand: longer than a busy cluster
# takes to respond, shorter than a user waits before doubting the address.
_SECONDS = 30


@contextmanager
def connect(address: str | None, n_workers: int | None) -> Iterator[Any]:
    """Open a client of the cluster at an address, or of `n_workers` processes on this machine.

    Raises ValueError if dask is not installed, or if no scheduler or worker responds.
    """
    option = "--workers" if address is None else "--cluster"
    try:
        from distributed import Client, LocalCluster
        from distributed.comm import resolve_address
    except ImportError:
        raise ValueError(f'{option}: needs dask: pip install "lloydformer[dask]"') from None
    if address is None:
        # A dashboard at any free port: two fits at once would compete for the usual one. Warnings
        # of workers, as of much unmanaged memory, would be printed between our lines.
        with (
            LocalCluster(
                n_workers=n_workers, processes=True, dashboard_address=":0", silence_logs="ERROR"
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
            client.as_current(),
        ):
            yield client
        return
    try:
        resolve_address(address)  # a client of an address that has no meaning cannot be closed
        # not as default: a client that gets no answer would stay the scheduler that dask uses
        client = Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        words = " ".join(str(error).split())[:150]  # one readable line
        raise ValueError(
            f"--cluster: no scheduler answers at {address} ({words}); start one with dask "
            "scheduler, or pass --workers"
        ) from None
    with client, client.as_current():
        try:
            client.wait_for_workers(1, timeout=_SECONDS)
        except TimeoutError:
            raise ValueError(
                f"--cluster: the scheduler at {address} has no worker after {_SECONDS} seconds; "
                f"start some with dask worker {address}"
            ) from None
        yield client


@dataclass(frozen=True)
class RowsOnCluster:
    """Rows of files, one delayed block for each range.

    Attributes
    ----------
    data : str
        The files, as the user named them.
    ranges : list of str
        The names of the ranges in errors.
    blocks : list of Delayed
        Arrays (m, d), kept on the workers.
    names : tuple of str or None
        Of the columns.
    """

    data: str
    ranges: list[str]
    blocks: list[Any]
    names: tuple[str, ...] | None

    @classmethod
    def read(cls, client: Any, data: str, options: TableOptions) -> "RowsOnCluster":
        """Let workers look at the files, and begin to read the chosen columns."""
        from dask import delayed
        from distributed import futures_of

        files, options = find_files(data), replace(options, on_workers=True)
        splits = client.compute([delayed(split_file)(file, options) for file in files])
        try:
            ranges_of_files = Waiting(client).results(splits, files)
        except ClusterError as error:  # to be printed in one line, as other errors of the data
            raise ValueError(str(error)) from None
        first = ranges_of_files[0][0].header
        columns = choose_by_name(first)
        for header in (ranges[0].header for ranges in ranges_of_files):
            if header.names != first.names or header.width != first.width:
                raise ValueError(
                    f"{header.name}: its columns differ from those of {first.name}; pass files "
                    "with the same columns"
                )
            header.check_types(columns)
        names = None if first.names is None else tuple(first.names[i] for i in columns)
        parts = [part for ranges in ranges_of_files for part in ranges]
        tasks = [delayed(_read_finite)(data, part, columns) for part in parts]
        rows = cls(data, [part.words for part in parts], list(client.persist(tasks)), names)
        with rows.name_data():
            futures = [future for block in rows.blocks for future in futures_of(block)]
            # Errors name the files here; the estimator knows partitions by their numbers only.
            Waiting(client).done(futures, rows.ranges)
            if not any(Waiting(client).results(client.map(len, futures), rows.ranges)):
                raise ValueError(f"{data}: found no rows; points are rows of numbers")
        return rows

    @contextmanager
    def name_data(self) -> Iterator[None]:
        """Name the data in errors of the estimator and the cluster, which know them as X."""
        try:
            yield
        except ArgumentError as error:
            raise ValueError(describe_error(error, self.data)) from None
        except ClusterError as error:
            words = f"{self.data}: {error.problem}" if error.argument == "X" else str(error)
            raise ValueError(words) from None


def _read_finite(data: str, part: FileRange, columns: Sequence[int]) -> np.ndarray:
    """Read a range, on a worker; raises ValueError for NaN and infinity."""
    rows = read_range(part, columns)
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        place = part.locate(int(np.argmin(finite)))
        raise ValueError(f"{data}: found NaN or infinity in {place}; remove or fill in such rows")
    return rows


class ClusterFitJob:
    """Fit one number of clusters on a cluster, and write the files.

    The constructor raises ValueError for settings that are not possible, and for files that exist
    or cannot be written.

    Parameters
    ----------
    settings : FitSettings
        What the user asks for; `data` is a file, a folder or a pattern, as fsspec reads it.
    command : str
        The command line, for summary.json.
    """

    def __init__(self, settings: FitSettings, command: str = "") -> None:
        settings.check()
        if settings.clusters is None:
            raise ValueError("-k: missing; with a cluster pass one number, such as -k 8")
        self.settings, self.command = settings, command
        numbers = parse_clusters(settings.clusters)
        self.n_clusters = numbers[0]
        if len(numbers) > 1:
            raise ValueError(
                f"-k: found {settings.clusters}; with a cluster pass one number; choose k on a "
                "sample first, without --cluster and --workers"
            )
        outputs.check_outputs(settings)

    def run(
        self, client: Any, callback: Any = None
    ) -> tuple[Clusterer, ClusterTotals, dict[str, Any]]:
        """Read, fit, write; returns the model, sizes and distances, and the summary."""
        settings = self.settings
        rows = RowsOnCluster.read(client, settings.data, settings.table_options())
        model, began = settings.model(self.n_clusters, callback=callback), time.perf_counter()
        with rows.name_data():
            model.fit(rows.blocks)
        seconds = time.perf_counter() - began
        if rows.names is not None:
            model.feature_names_in_ = np.array(rows.names, dtype=object)
        columns = rows.names or tuple(f"x{i + 1}" for i in range(model.n_features_in_))
        # Labels first: they need the cluster, which may fail; nothing is kept if it does.
        with atomic_folder(settings.folder, outputs.FILES, force=settings.force) as folder:
            with rows.name_data(), (folder / f"labels.{settings.labels}").open("wb") as file:
                totals = self._write_labels(client, rows, model, file)
            outputs.write_centers(folder / "centers.csv", columns, totals.sizes, model)
            summary = outputs.describe_fit(
                *(settings, self.command, model),
                totals=totals,
                columns=columns,
                seconds=seconds,
            )
            summary["ranges"] = len(rows.ranges)
            outputs.write_json(folder / "summary.json", summary)
            model.save_pretrained(folder / "model")
        return model, totals, summary

    def _write_labels(
        self, client: Any, rows: RowsOnCluster, model: Any, file: BinaryIO
    ) -> ClusterTotals:
        """Write labels, which workers compute, range by range; returns what was counted."""
        from dask import delayed

        totals, leaves_out = ClusterTotals(len(model.cluster_centers_)), hasattr(model, "outliers_")
        labels = model.labels_.to_delayed() if leaves_out else [None] * len(rows.blocks)
        # Workers need the centers only: labels are large, blocks are arrays without names, and a
        # callback may not be picklable.
        centers_only, assign = copy(model), delayed(_assign_block)
        centers_only.callback = None
        for name in ("labels_", "outliers_", "feature_names_in_"):
            vars(centers_only).pop(name, None)
        tasks = [assign(centers_only, *pair) for pair in zip(rows.blocks, labels, strict=True)]
        waiting, names, futures = Waiting(client), rows.ranges, client.compute(tasks)
        waiting.done(futures, names)
        # The precision of the file depends on the largest distance of all ranges.
        largest_of = client.map(lambda part: float(part[1].max(initial=0.0)), futures)
        largest = max(waiting.results(largest_of, names))

        def parts() -> Iterator[Any]:
            for name in names:  # each result is released on the cluster after use
                (part,) = waiting.results([futures.pop(0)], [name])
                totals.add(*part)
                yield part

        write_label_chunks(file, self.settings.labels, parts(), largest)
        return totals


def _assign_block(model: Any, rows: np.ndarray, labels: Any) -> tuple[np.ndarray, Any, Any]:
    # In the precision of the fit: files of float32 and float64 were fitted together in float64.
    rows = rows.astype(model.cluster_centers_.dtype, copy=False)
    out = None if labels is None else np.asarray(labels) == -1
    if len(rows) == 0:
        return np.zeros(0, np.int32), np.zeros(0, rows.dtype), out
    clusters = model.predict(rows)
    return clusters, model.distances_to_centers(rows, clusters), out
