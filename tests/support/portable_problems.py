"""Problems for the portable CUDA kernels, and Lloyd's iterations on them in float64."""

from dataclasses import dataclass

import numpy as np
import torch
from triton_interpreter import DEVICE

from lloydformer.engines.cuda.lloyd_state import LloydState
from lloydformer.engines.cuda.points import DevicePoints


@dataclass(frozen=True)
class Sizes:
    """A problem by its sizes and what is special about it."""

    n: int
    d: int
    k: int
    dtype: torch.dtype = torch.float32
    scale: float = 1.0
    shift: float = 0.0
    """Added to all coordinates; the origin takes most of it away again."""
    whole_numbers: bool = False
    """Coordinates are small whole numbers, with many exact ties; some rows are equal."""
    weighted: bool = False
    """Weights, every third of them 0."""
    directions: bool = False

    def points(self, seed: int = 0) -> DevicePoints:
        drawn = torch.Generator().manual_seed(seed)
        x = torch.randn(self.n, self.d, generator=drawn, dtype=torch.float64)
        if self.whole_numbers:
            x = x.round().clamp(-1, 1)
        if self.directions:
            x = x / x.norm(dim=1, keepdim=True)
        rows = (x * self.scale + self.shift).to(self.dtype)
        origin = torch.full((self.d,), self.shift, dtype=torch.float64).to(self.dtype)
        weights = (
            torch.rand(self.n, generator=drawn, dtype=torch.float64) if self.weighted else None
        )
        if weights is not None:
            weights[self.k :: 3] = 0
        reach = (rows - origin).abs().max().item()
        heaviest = 1.0 if weights is None else weights.max().item()
        on_device = weights if weights is None else weights.to(DEVICE)
        return DevicePoints(rows.to(DEVICE), origin.to(DEVICE), on_device, reach, heaviest)

    def state(self, points: DevicePoints, tolerance: float = 0.0) -> LloydState:
        """Starts from the first rows."""
        state = LloydState(points, self.k, self.directions)
        state.begin((points.rows - points.origin)[: self.k].double(), tolerance)
        return state


@dataclass
class Truth:
    """Lloyd's iterations in float64, with exact sums in Python's integers."""

    points: DevicePoints
    centers: np.ndarray
    directions: bool = False

    def __post_init__(self) -> None:
        points = self.points
        self.dtype = points.rows.cpu().numpy().dtype
        self.x = (points.rows - points.origin).cpu().numpy().astype(np.float64)
        ones = np.ones(points.n_rows)
        self.weights = ones if points.weights is None else points.weights.cpu().numpy()
        self.labels = np.full(points.n_rows, -1)
        self.fixed = np.rint(self.x * self.weights[:, None] * points.sum_unit).astype(np.int64)
        self.fixed_mass = np.rint(self.weights * points.mass_unit).astype(np.int64)

    @property
    def rounded(self) -> np.ndarray:
        return self.centers.astype(self.dtype).astype(np.float64)

    def squares(self) -> np.ndarray:
        return np.square(self.x[:, None, :] - self.rounded[None, :, :]).sum(-1)

    def step(self) -> tuple[float, float, int]:
        """One iteration; returns what `LloydState.record` holds."""
        labels = self.squares().argmin(1)
        changed = int(((labels != self.labels) & (self.weights > 0)).sum())
        self.labels, rounded, before = labels, self.rounded, self.centers
        own = labels[:, None] == np.arange(len(rounded))
        self.sums = own.T.astype(np.int64) @ self.fixed
        self.masses = own.T.astype(np.int64) @ self.fixed_mass
        sums = self.sums / self.points.sum_unit
        masses = self.masses / self.points.mass_unit
        lengths = np.sqrt(np.square(sums).sum(1)) if self.directions else masses
        divisor = np.where(lengths == 0, 1, lengths)[:, None]
        self.centers = np.where(lengths[:, None] == 0, before, sums / divisor)
        objective = (masses * np.square(rounded).sum(1)).sum() - 2 * (sums * rounded).sum()
        return objective, np.square(self.centers - before).sum(), changed
