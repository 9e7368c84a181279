"""Lloyd's iterations by the portable kernels."""

from typing import Any

import torch
import triton
from torch import Tensor

from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.portable.assign import assign
from lloydformer.engines.cuda.portable.copies import copy_centers, prepare
from lloydformer.engines.cuda.portable.decide import decide_few, decide_many
from lloydformer.engines.cuda.portable.measure import add_parts, measure
from lloydformer.engines.cuda.portable.move import collect, move, move_small
from lloydformer.engines.cuda.portable.tiles import (
    Tile,
    Tiles,
    choose_tiles,
    keeps_centers,
    padded_features,
)
from lloydformer.engines.cuda.portable.update import finish, move_centers
from lloydformer.engines.cuda.work import RECORDS, Work

_INTERPRETED_PROCESSORS = 2


class PortableLloyd:
    """Exact Lloyd iterations on any CUDA GPU since Ampere, the same bits every time.

    Nothing waits for the device. Besides the points and `work` it holds a copy of the points in
    float16, their features rounded up to a multiple of 16, and 20 bytes for each point.

    Parameters
    ----------
    points : Points
        Below 2^31 rows.
    work : Work
        The state that iterations read and change.
    tiles : Tiles, optional
        Sizes of tiles; by default those of the table for this device.
    """

    def __init__(self, points: Points, work: Work, tiles: Tiles | None = None) -> None:
        self._points, self._work = points, work
        n, d, k = points.n_rows, points.n_features, work.centers.shape[0]
        device = points.rows.device
        interpreted = device.type == "cpu"
        self._tiles = tiles or choose_tiles(d, k, "interpreter" if interpreted else "any")
        self._processors, self._capability = _INTERPRETED_PROCESSORS, 0
        if not interpreted:
            properties = torch.cuda.get_device_properties(device)
            self._processors = properties.multi_processor_count
            self._capability = 10 * properties.major + properties.minor
        self._padded = padded_features(d)
        rounded = triton.cdiv(k, self._tiles.assign.centers) * self._tiles.assign.centers

        def empty(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=device)

        half, single, whole = torch.float16, torch.float32, torch.int32
        self._half = empty(n, self._padded, dtype=half)
        self._norms, self._residuals = empty(n, dtype=single), empty(n, dtype=single)
        self._labels, self._others = empty(n, dtype=whole), empty(n, dtype=whole)
        self._queue, self._queued = empty(n, dtype=whole), empty(3, dtype=whole)
        self._center_half = empty(rounded, self._padded, dtype=half)
        self._half_squares = empty(rounded, dtype=single)
        self._center_norms = empty(rounded, dtype=single)
        self._center_residuals = empty(rounded, dtype=single)
        self._parts = empty(2, k, dtype=torch.float64)
        self._always = torch.zeros(2, dtype=whole, device=device)
        self._nothing_changed = torch.zeros(1, dtype=torch.int64, device=device)
        units = [points.half_unit, points.sum_unit, points.mass_unit]
        self._units = torch.tensor(units, dtype=torch.float64, device=device)
        self._prepare()

    def step(self) -> None:
        """Enqueue one iteration, as `Work` describes it."""
        self.assign()
        work, (k, d) = self._work, self._work.centers.shape
        tile = self._tiles.update
        move_centers[(triton.cdiv(k, tile.rows),)](
            work.sums, work.masses, self._units, work.centers, work.seen, self._parts, work.status,
            k, d, TILE=tile.rows, CHUNK=tile.features, DIRECTIONS=work.directions,
            **_launch(tile),
        )  # fmt: skip
        finish[(1,)](
            self._parts, work.masses, work.changed, work.tolerance, work.record, work.status,
            k, RECORDS=RECORDS, TILE=1024,
        )  # fmt: skip

    def assign(self) -> None:
        """Enqueue the first half of an iteration: labels, sums and masses for `Work.seen`."""
        work = self._work
        self._label(work.status, work.changed)
        self._move()

    def measure(self, distances: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Labels and distances for the centers in `Work.seen`; changes nothing in `Work`.

        Parameters
        ----------
        distances : Tensor of shape (n,)
            Filled with squared distances to the nearest centers; in the precision of the rows.

        Returns
        -------
        labels : Tensor of shape (n,)
            int32; the next call of any method overwrites them.
        total : Tensor of shape ()
            The sum of w d^2, in float64.
        masses : Tensor of shape (k,)
            The sum of w of each label, in float64.
        """
        points, work, tile = self._points, self._work, self._tiles.measure
        n, d, k = points.n_rows, points.n_features, work.centers.shape[0]
        self._label(self._always, self._nothing_changed)
        n_tiles = triton.cdiv(n, tile.rows)
        masses = torch.zeros_like(work.masses)
        parts = work.record.new_empty(n_tiles)
        total = work.record.new_empty(())
        measure[(n_tiles,)](
            points.rows, points.origin, points.weights, self._units, work.seen, self._labels,
            distances, masses, parts, n, k, d,
            TILE=tile.rows, CHUNK=tile.features, CENTERS=tile.centers, **_launch(tile),
        )  # fmt: skip
        add_parts[(1,)](parts, total, n_tiles, TILE=1024)
        return self._labels, total, masses.double() / points.mass_unit

    def _prepare(self) -> None:
        points, tile = self._points, self._tiles.prepare
        prepare[(triton.cdiv(points.n_rows, tile.rows),)](
            points.rows, points.origin, self._units, self._half, self._norms, self._residuals,
            points.n_rows, points.n_features, self._padded,
            TILE=tile.rows, CHUNK=tile.features, **_launch(tile),
        )  # fmt: skip

    def _label(self, status: Tensor, changed: Tensor) -> None:
        """Exact labels for `Work.seen`, if the status says so; sets `changed` to 0."""
        points, work, tiles = self._points, self._work, self._tiles
        n, d, k = points.n_rows, points.n_features, work.centers.shape[0]
        tile = tiles.centers
        copy_centers[(triton.cdiv(self._half_squares.shape[0], tile.rows),)](
            work.seen, self._units, self._center_half, self._half_squares, self._center_norms,
            self._center_residuals, self._queued, changed, status, k, d, self._padded,
            TILE=tile.rows, CHUNK=tile.features, **_launch(tile),
        )  # fmt: skip
        tile = tiles.assign
        n_tiles = triton.cdiv(n, tile.rows)
        assign[(self._programs(tile, n_tiles),)](
            self._half, self._norms, self._residuals, self._center_half, self._half_squares,
            self._center_norms, self._center_residuals, status, self._labels, self._others,
            self._queue, self._queued, n, k, self._padded, n_tiles,
            TILE=tile.rows, CENTERS=tile.centers, CHUNK=tile.features,
            WHOLE=self._padded <= tile.features, ONE=keeps_centers(tile, k, self._capability),
            **_launch(tile),
        )  # fmt: skip
        queued = (points.rows, points.origin, work.seen, status, self._labels)
        few, many = tiles.few, tiles.many
        decide_few[(self._programs(few, triton.cdiv(n, few.rows)),)](
            *queued, self._others, self._queue, self._queued, k, d,
            CENTERS=tile.centers, TILE=few.rows, CHUNK=few.features, **_launch(few),
        )  # fmt: skip
        decide_many[(self._programs(many, triton.cdiv(n, many.rows)),)](
            *queued, self._queue, self._queued, n, k, d,
            TILE=many.rows, CENTERS=many.centers, CHUNK=many.features, **_launch(many),
        )  # fmt: skip

    def _move(self) -> None:
        points, work, tiles = self._points, self._work, self._tiles
        n, d, k = points.n_rows, points.n_features, work.centers.shape[0]
        tile = tiles.collect
        collect[(triton.cdiv(n, tile.rows),)](
            self._labels, work.assigned, points.weights, self._queue, self._queued, work.changed,
            work.status, n, TILE=tile.rows, **_launch(tile),
        )  # fmt: skip
        moving = (
            points.rows, points.origin, points.weights, self._units, self._labels, work.assigned,
            work.sums, work.masses, self._queue, self._queued, work.status,
        )  # fmt: skip
        tile = tiles.move_small or tiles.move
        grid = (self._programs(tile, triton.cdiv(n, tile.rows)),)
        if tiles.move_small:
            move_small[grid](
                *moving, k, d, TILE=tile.rows, CENTERS=tile.centers, WIDTH=tile.features,
                **_launch(tile),
            )  # fmt: skip
        else:
            move[grid](*moving, d, TILE=tile.rows, CHUNK=tile.features, **_launch(tile))

    def _programs(self, tile: Tile, n_tiles: int) -> int:
        return min(self._processors * tile.programs, n_tiles)


def _launch(tile: Tile) -> dict[str, Any]:
    return {"num_warps": tile.warps, "num_stages": tile.stages}
