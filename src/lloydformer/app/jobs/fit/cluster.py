"""A fit on a Dask cluster: its workers read ranges of the files; no row comes to this process."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lloydformer.data.choosing import choose_by_name
from lloydformer.data.file_header import FileRange
from lloydformer.data.file_ranges import find_files, ranges_of, read_range
from lloydformer.data.table_options import TableOptions
from lloydformer.engines.dask.transport import ClusterError, Waiting
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.data_errors import with_name
from lloydformer.jobs.fit.label_file import write_label_chunks
from lloydformer.jobs.fit.outputs import FILES, FitOutputs, versions, write_centers, write_summary
from lloydformer.jobs.fit.settings import FitSettings
from lloydformer.storage.whole_folder import filling

_SECONDS = 30
"""To wait for a scheduler, and for a worker."""


@contextmanager
def connected(address: str | None, n_workers: int | None) -> Iterator[Any]:
    """A client of the cluster at an address, or of one with so many processes on this machine.

    Raises ValueError if dask is not installed, or nobody answers.
    """
    option = "--workers" if address is None else "--cluster"
    try:
        from distributed import Client, LocalCluster
        from distributed.comm import resolve_address
    except ImportError:
        raise ValueError(f'{option}: needs dask: pip install "lloydformer[dask]"') from None
    if address is None:
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
        words = " ".join(str(error).split())[:150]
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
    ranges : list of FileRange
        Where they are.
    blocks : list of Delayed
        Arrays (m, d), kept on the workers.
    names : tuple of str or None
        Of the columns.
    """

    data: str
    ranges: list[FileRange]
    blocks: list[Any]
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, client: Any, data: str, options: TableOptions) -> "RowsOnCluster":
        """Let workers look at the files, and begin to read the chosen columns."""
        from dask import delayed

        files, options = find_files(data), options.changed(on_workers=True)
        looks = client.compute([delayed(ranges_of)(file, options) for file in files])
        with _in_one_line():
            of_files = Waiting(client).results(looks, files)
        first = of_files[0][0].header
        columns = choose_by_name(first, options)
        for header in (ranges[0].header for ranges in of_files):
            if header.names != first.names or header.width != first.width:
                raise ValueError(
                    f"{header.name}: its columns differ from those of {first.name}; pass files "
                    "with the same columns"
                )
            header.check_types(columns, options)
        names = None if first.names is None else tuple(first.names[i] for i in columns)
        found = [part for ranges in of_files for part in ranges]
        blocks = [delayed(read_range)(part, columns, options) for part in found]
        return cls(data, found, list(client.persist(blocks)), names)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Name the files, ranges and rows in errors, where they have numbers of partitions."""
        try:
            with _in_one_line():
                yield
        except ValueError as error:
            words = re.sub(r"partition (\d+), row (\d+) of it", self._place, str(error))
            words = re.sub(r"(X: )?partition (\d+)", self._words, words)
            if words.startswith("X: found 0 rows"):
                words = "X: found no rows; points are rows of numbers"
            if words.startswith(("X: ", "checkpoint: ")):
                words = with_name(self.data, words)
            raise ValueError(words) from None

    def _place(self, match: re.Match[str]) -> str:
        return self.ranges[int(match[1])].place(int(match[2]))

    def _words(self, match: re.Match[str]) -> str:
        return self.ranges[int(match[2])].words


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Errors of a cluster as ValueError, which the command prints in one line."""
    try:
        yield
    except ClusterError as error:
        raise ValueError(str(error)) from None


@dataclass
class ClusterTotals:
    """What is counted while labels are written."""

    sizes: np.ndarray
    sums: np.ndarray
    left_out: np.ndarray | None
    n_rows: int = 0

    def add(self, clusters: np.ndarray, distances: np.ndarray, out: np.ndarray | None) -> None:
        """Count some rows."""
        k, kept = len(self.sizes), np.ones(len(clusters), bool) if out is None else ~out
        self.n_rows += len(clusters)
        self.sizes += np.bincount(clusters[kept], minlength=k)
        self.sums += np.bincount(clusters[kept], distances[kept].astype(np.float64), minlength=k)
        if out is not None and self.left_out is not None:
            self.left_out += np.bincount(clusters[out], minlength=k)

    @property
    def mean_distances(self) -> list[float]:
        return (self.sums / np.maximum(self.sizes, 1)).tolist()


@dataclass(frozen=True)
class ClusterFitJob:
    """Fit one number of clusters on a cluster, and write the files.

    Attributes
    ----------
    data : str
        A file, a folder or a pattern, as fsspec reads it.
    n_clusters : int
        The number of clusters.
    settings, options, outputs
        What the user said.
    command : str
        The command line, for summary.json.
    """

    data: str
    n_clusters: int
    settings: FitSettings
    options: TableOptions
    outputs: FitOutputs
    command: str = ""

    def run(
        self, client: Any, callback: Any = None
    ) -> tuple[Clusterer, ClusterTotals, dict[str, Any]]:
        """Read, fit, write; returns the model, sizes and distances, and the summary."""
        rows = RowsOnCluster.of(client, self.data, self.options)
        model, began = self.settings.model(self.n_clusters, callback=callback), time.perf_counter()
        with rows.errors():
            model.fit(rows.blocks)
        seconds = time.perf_counter() - began
        if rows.names is not None:
            model.feature_names_in_ = np.array(rows.names, dtype=object)
        columns = rows.names or tuple(f"x{i + 1}" for i in range(model.n_features_in_))
        with filling(self.outputs.folder, FILES, force=self.outputs.force) as folder:
            with rows.errors():
                totals = self._write_labels(client, rows, model, folder)
            write_centers(folder / "centers.csv", columns, totals.sizes.tolist(), model)
            summary = self._summary(model, columns, totals, seconds, len(rows.ranges))
            write_summary(folder, summary)
            model.save_pretrained(folder / "model")
        return model, totals, summary

    def _write_labels(
        self, client: Any, rows: RowsOnCluster, model: Any, folder: Path
    ) -> ClusterTotals:
        """Labels come here range by range, and go to the file."""
        k, trims = len(model.cluster_centers_), hasattr(model, "outliers_")
        zeros = np.zeros(k, dtype=np.int64)
        totals = ClusterTotals(zeros.copy(), np.zeros(k), zeros.copy() if trims else None)
        waiting, names = Waiting(client), [part.words for part in rows.ranges]
        futures = client.compute(_assigned(model, rows.blocks))
        waiting.done(futures, names)
        most = max(waiting.results(client.map(_largest, futures), names))
        with (folder / f"labels.{self.outputs.labels}").open("wb") as file:
            parts = _counted(waiting, futures, names, totals)
            write_label_chunks(file, self.outputs.labels, parts, most)
        return totals

    def _summary(
        self, model: Any, columns: Sequence[str], totals: ClusterTotals, seconds: float, n: int
    ) -> dict[str, Any]:
        outputs = self.outputs
        return {
            "command": self.command, "versions": versions(), "data": self.data,
            "n": totals.n_rows, "d": len(columns), "columns": list(columns), "ranges": n,
            "algorithm": self.settings.algorithm, "options": self.settings.printable,
            "k": self.n_clusters, "inertia": model.inertia_, "n_iter": model.n_iter_,
            "seconds": seconds,
            "points_per_second": totals.n_rows * max(model.n_iter_, 1) / max(seconds, 1e-9),
            "sizes": totals.sizes.tolist(), "history": model.objective_history_.tolist(),
            "files": {Path(name).stem: str(outputs.folder / name) for name in outputs.names},
        }  # fmt: skip


def _assigned(model: Any, blocks: list[Any]) -> list[Any]:
    """For each block: clusters, distances, and which rows are left out."""
    from copy import copy

    from dask import delayed

    light, labels = copy(model), [None] * len(blocks)
    if hasattr(model, "outliers_"):
        labels = list(model.labels_.to_delayed())
    for name in ("labels_", "outliers_", "feature_names_in_"):  # blocks are arrays
        vars(light).pop(name, None)
    light.callback, work = None, delayed(_assignment)
    return [work(light, block, label) for block, label in zip(blocks, labels, strict=True)]


def _assignment(model: Any, rows: np.ndarray, labels: Any) -> tuple[np.ndarray, Any, Any]:
    rows = rows.astype(model.cluster_centers_.dtype, copy=False)  # as in the fit
    out = None if labels is None else np.asarray(labels) == -1
    if len(rows) == 0:
        return np.zeros(0, np.int32), np.zeros(0, rows.dtype), out
    clusters = model.predict(rows)
    return clusters, model.distances_to_centers(rows, clusters), out


def _largest(found: tuple[np.ndarray, np.ndarray, Any]) -> float:
    return float(found[1].max()) if len(found[1]) else 0.0


def _counted(
    waiting: Waiting, futures: list[Any], names: list[str], totals: ClusterTotals
) -> Iterator[Any]:
    """The results of futures in their order; each is released on the cluster after use."""
    for name in names:
        (found,) = waiting.results([futures.pop(0)], [name])
        totals.add(*found)
        yield found
