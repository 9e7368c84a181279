"""K-means of points with missing values by definition, one point and one coordinate at a time."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.algorithms.contract import History


@dataclass(frozen=True)
class Missing:
    r"""An iteration of k-means over observed values; NaN is a missing one.

    The squared distance is $f_i \sum_{l \in O_i} (x_{il} - c_l)^2$ over the observed columns O_i.
    With policy="ignore" $f_i = d / |O_i|$, and a coordinate of a center is the mean of its points'
    observed values, weighted by $f_i$. With policy="impute" $f_i = 1$, and it is the mean of all
    its points, whose missing values are those of the old center. A coordinate that no point of the
    cluster has stays; a center without points uses all points, as in the circuits.
    """

    policy: str = "ignore"

    def squares(self, point: ndarray, center: ndarray) -> float:
        """Return the squared distance of one point to one center."""
        observed = [(x - c) ** 2 for x, c in zip(point, center, strict=True) if not np.isnan(x)]
        return sum(observed) * (len(point) / len(observed) if self.policy == "ignore" else 1.0)

    def assign(
        self, points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"]
    ) -> Float[ndarray, "n k"]:
        """Return one-hot assignments to the nearest centers, the first one on ties."""
        squares = np.array([[self.squares(x, c) for c in centers] for x in points])
        return np.eye(len(centers))[squares.argmin(axis=1)]

    def place(
        self, points: ndarray, centers: ndarray, assignments: ndarray
    ) -> Float[ndarray, "k d"]:
        """Return the new centers, coordinate by coordinate."""
        new = centers.copy()
        for j, member in enumerate(assignments.T.astype(bool)):
            own = points[member] if member.any() else points
            for column in range(points.shape[1]):
                values = own[:, column]
                there = ~np.isnan(values)
                if self.policy == "impute":
                    new[j, column] = np.where(there, values, centers[j, column]).mean()
                elif there.any():
                    shares = points.shape[1] / (~np.isnan(own[there])).sum(axis=1)
                    new[j, column] = np.average(values[there], weights=shares)
        return new

    def objective(self, points: ndarray, centers: ndarray) -> float:
        """Return the sum of the squared distances to the nearest centers."""
        return float(sum(min(self.squares(x, c) for c in centers) for x in points))

    def run(self, points: ndarray, centers: ndarray, n_iterations: int) -> History:
        """Run the iterations in float64 and return their history."""
        points, centers = np.asarray(points, float), np.asarray(centers, float)
        all_centers, all_assignments = [centers], []
        for _ in range(n_iterations):
            assignments = self.assign(points, centers)
            centers = self.place(points, centers, assignments)
            all_centers.append(centers)
            all_assignments.append(assignments)
        return History(np.stack(all_centers), np.stack(all_assignments))
