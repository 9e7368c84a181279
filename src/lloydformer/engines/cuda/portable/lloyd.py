"""Lloyd's iterations by the Triton kernels."""

from typing import Any

import torch
import triton
from torch import Tensor

from lloydformer.engines.cuda.lloyd_state import RECORD_LENGTH, LloydKernels, LloydState
from lloydformer.engines.cuda.points import DevicePoints
from lloydformer.engines.cuda.portable import labels, sums
from lloydformer.engines.cuda.portable.tiles import (
    Tile,
    Tiles,
    can_keep_centers,
    choose_tiles,
    pad_features,
)

# Multiprocessors of Triton's interpreter: programs that work on many tiles are tested with two.
_INTERPRETED_PROCESSORS = 2


class PortableLloyd(LloydKernels):
    """Exact, deterministic Lloyd iterations on any NVIDIA GPU since Ampere.

    The host does not wait for the device. Besides the points and `state` it holds a copy of the
    points in float16, their features rounded up to a multiple of 16, and 20 bytes for each point.
    Final labels and empty clusters are left to the host (`assign_final` and `fill_empty` of the
    protocol do nothing).

    Parameters
    ----------
    points : DevicePoints
        Below 2^31 rows.
    state : LloydState
        The state that iterations read and change.
    tiles : Tiles, optional
        Sizes of tiles; by default those of the table for this device.
    """

    # Chosen by hand: an iteration of eight Triton launches takes the host longer than one of the
    # C++ kernels, so fewer of them are enqueued before the first look at the stop rule.
    first_batch = 8

    def __init__(self, points: DevicePoints, state: LloydState, tiles: Tiles | None = None) -> None:
        self.points, self.state, device = points, state, points.rows.device
        n, d, k = points.n_rows, points.n_features, state.n_clusters
        interpreted = device.type == "cpu"
        self._tiles = tiles or choose_tiles(d, k, "interpreter" if interpreted else "any")
        self._processors, self._capability = _INTERPRETED_PROCESSORS, 0
        if not interpreted:
            properties = torch.cuda.get_device_properties(device)
            self._processors = properties.multi_processor_count
            self._capability = 10 * properties.major + properties.minor
        padded = pad_features(d)
        padded_k = triton.cdiv(k, self._tiles.assign.centers) * self._tiles.assign.centers

        def empty(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.empty(shape, dtype=dtype, device=device)

        single, whole, double = torch.float32, torch.int32, torch.float64
        units = [points.half_unit, points.sum_unit, points.mass_unit]
        in_state = "rounded", "centers", "sums", "masses", "tolerance", "record"
        of_centers = "lowered", "center_errors"
        # Arguments of the kernels, by the names of their parameters.
        self._arguments: dict[str, Any] = {
            "rows": points.rows,
            "origin": points.origin,
            "weights": points.weights,
            "units": torch.tensor(units, dtype=double, device=device),
            "half": empty(n, padded, dtype=torch.float16),
            **{name: empty(n, dtype=single) for name in ("norms", "residuals")},
            **{name: empty(n, dtype=whole) for name in ("labels", "others", "queue")},
            "queued": empty(3, dtype=whole),
            "center_half": empty(padded_k, padded, dtype=torch.float16),
            **{name: empty(padded_k, dtype=single) for name in of_centers},
            "parts": empty(2, k, dtype=double),
            **{name: getattr(state, name) for name in in_state},
            "n": n,
            "d": d,
            "k": k,
            "padded": padded,
            "ratio": state.center_ratio,
        }
        # In place of the state's, for labels that must not change it.
        self._running = torch.zeros(2, dtype=whole, device=device)
        self._unused_count = torch.zeros(1, dtype=torch.int64, device=device)
        self._launch(labels.prepare, self._tiles.prepare, self._count_tiles(self._tiles.prepare))

    def begin(self, centers: Tensor, tolerance: float) -> None:
        self.state.begin(centers, tolerance)

    def step(self) -> None:
        self.assign()
        state, tile = self.state, self._tiles.update
        own = {"status": state.status, "changed": state.changed}
        n_tiles = triton.cdiv(state.n_clusters, tile.rows)
        self._launch(sums.move_centers, tile, n_tiles, DIRECTIONS=state.directions, **own)
        self._launch(sums.finish, None, 1, RECORDS=RECORD_LENGTH, TILE=1024, **own)

    def assign(self) -> None:
        state, tiles = self.state, self._tiles
        self._label(state.status, state.changed)
        own = {"status": state.status, "changed": state.changed, "assigned": state.assigned}
        self._launch(sums.collect, tiles.collect, self._count_tiles(tiles.collect), **own)
        tile = tiles.move_small or tiles.move
        kernel = sums.move_small if tiles.move_small else sums.move
        self._launch(kernel, tile, self._count_programs(tile), **own)

    def measure(self, distances: Tensor) -> Tensor:
        # Labels again, in memory of their own: the host may ask while iterations have ended, and
        # the state must not change.
        self._label(self._running, self._unused_count)
        record, tile = self.state.record, self._tiles.measure
        n_tiles = self._count_tiles(tile)
        parts, total = record.new_empty(n_tiles), record.new_empty(())
        self._launch(sums.measure, tile, n_tiles, parts=parts, distances=distances)
        self._launch(sums.add_parts, None, 1, parts=parts, total=total, count=n_tiles, TILE=1024)
        return total

    def _label(self, status: Tensor, changed: Tensor) -> None:
        """Enqueue exact labels for `rounded`, if the status says so; set `changed` to 0."""
        tiles = self._tiles
        own: dict[str, Any] = {"status": status, "changed": changed}
        padded_k, padded = self._arguments["center_half"].shape
        n_tiles = triton.cdiv(padded_k, tiles.centers.rows)
        tile, k = tiles.assign, self.state.n_clusters
        self._launch(labels.copy_centers, tiles.centers, n_tiles, CODES=tile.centers, **own)
        own |= {"n_tiles": self._count_tiles(tile), "WHOLE": padded <= tile.features}
        one = can_keep_centers(tile, k, self._capability)
        self._launch(labels.assign, tile, self._count_programs(tile), ONE=one, **own)
        few, many = self._count_programs(tiles.few), self._count_programs(tiles.many)
        self._launch(labels.decide_few, tiles.few, few, **own | {"CENTERS": tile.centers})
        self._launch(labels.decide_many, tiles.many, many, **own)

    def _count_tiles(self, tile: Tile) -> int:
        n_tiles: int = triton.cdiv(self._arguments["n"], tile.rows)
        return n_tiles

    def _count_programs(self, tile: Tile) -> int:
        return min(self._processors * tile.programs, self._count_tiles(tile))

    def _launch(self, kernel: Any, tile: Tile | None, n_programs: int, **given: Any) -> None:
        """Enqueue a kernel; its arguments are found by the names of its parameters."""
        options, arguments = {}, self._arguments
        if tile is not None:
            options = {"num_warps": tile.warps, "num_stages": tile.stages}
            sizes = {"TILE": tile.rows, "CHUNK": tile.features, "WIDTH": tile.features}
            given = {**sizes, "CENTERS": tile.centers, **given}
        chosen = {
            name: given[name] if name in given else arguments[name] for name in kernel.arg_names
        }
        kernel[(n_programs,)](**chosen, **options)
