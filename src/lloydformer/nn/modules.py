"""A layer that assigns points to learned centers, softly."""

import torch
from torch import Tensor, nn

from lloydformer.nn.operators import (
    center,
    check_temperature,
    relative_distances,
    row_blocks,
    soft_assign,
    soft_sums,
    to_precise,
)
from lloydformer.numerics.checks import check_count
from lloydformer.numerics.clusters import means_or


class SoftAssign(nn.Module):
    r"""Layer that writes each point as a mixture of k learned centers.

    It serves as a codebook, or as the head of deep clustering.

    Parameters
    ----------
    n_clusters : int
        Number of centers.
    n_features : int
        Number of features of a point.
    inverse_temperature : float or Parameter of shape (), default=1.0
        $\gamma$ of the soft-max over $-\gamma |x - c|^2$. The larger, the nearer to the nearest
        center. A parameter is learned.

    Attributes
    ----------
    centers : Parameter of shape (n_clusters, n_features)
        Drawn from a normal distribution; `start_at` places them by k-means.

    See Also
    --------
    soft_assign : What the layer computes, for centers from elsewhere.
    SoftKMeans : Soft k-means as an estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> x = torch.tensor([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    >>> layer = lf.nn.SoftAssign(2, 2, inverse_temperature=100.0).start_at(x, random_state=0)
    >>> mixtures, energies = layer(x)
    >>> mixtures.round(decimals=3).tolist()
    [[0.0, 1.0], [0.0, 1.0], [9.0, 9.0]]
    >>> energies.mean().backward()  # gradients of the centers, and of what came before
    """

    def __init__(
        self, n_clusters: int, n_features: int, inverse_temperature: float | nn.Parameter = 1.0
    ) -> None:
        super().__init__()
        k, d = check_count("n_clusters", n_clusters), check_count("n_features", n_features)
        check_temperature(inverse_temperature)
        self.inverse_temperature = inverse_temperature
        self.centers = nn.Parameter(torch.randn(k, d))

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return each point as a mixture of centers, and its free energy.

        Parameters
        ----------
        points : Tensor of shape (..., n_features)
            The points.

        Returns
        -------
        mixtures : Tensor of shape (..., n_features)
            Each point as a mixture of centers.
        energies : Tensor of shape (...)
            Free energies; their mean is a loss.

        See Also
        --------
        soft_assign : The same as a function.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> mixtures, energies = lf.nn.SoftAssign(3, 2)(torch.zeros(5, 4, 2))
        >>> mixtures.shape, energies.shape
        (torch.Size([5, 4, 2]), torch.Size([5, 4]))
        """
        return soft_assign(points, self.centers, self.inverse_temperature)

    @torch.no_grad()
    def labels(self, points: Tensor) -> Tensor:
        """Return the nearest center of each point.

        Parameters
        ----------
        points : Tensor of shape (..., n_features)
            The points.

        Returns
        -------
        Tensor of shape (...)
            Numbers of the centers, in int64.

        See Also
        --------
        SoftAssign.forward : Mixtures of all centers.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> x = torch.tensor([[0.0], [1.0], [9.0]])
        >>> layer = lf.nn.SoftAssign(2, 1).start_at(x, random_state=0)
        >>> bool(layer.labels(x)[0] == layer.labels(x)[1])
        True
        """
        flat, centers = to_precise(points.reshape(-1, points.shape[-1]), self.centers.to(points))
        labels = torch.empty(len(flat), dtype=torch.int64, device=points.device)
        for rows in row_blocks(len(flat), len(centers)):
            labels[rows] = relative_distances(*center(flat[rows], centers)).argmin(dim=1)
        return labels.view(points.shape[:-1])

    @torch.no_grad()
    def start_at(self, points: Tensor, random_state: int | None = None) -> "SoftAssign":
        """Place the centers by k-means on these points.

        Parameters
        ----------
        points : Tensor of shape (n, n_features)
            At least as many as there are centers.
        random_state : int, default=None
            Seed of k-means++.

        Returns
        -------
        SoftAssign
            The layer itself.

        See Also
        --------
        KMeans : The estimator that finds them.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> lf.nn.SoftAssign(1, 1).start_at(torch.tensor([[1.0], [3.0]])).centers.tolist()
        [[2.0]]
        """
        from lloydformer.estimators.kmeans import KMeans

        if points.dim() != 2 or points.shape[1] != self.centers.shape[1]:
            raise ValueError(
                f"points: found shape {tuple(points.shape)}; pass (n, {self.centers.shape[1]})"
            )
        # estimators take float32 and float64 only
        given = points.detach() if points.dtype == torch.float64 else points.detach().float()
        model = KMeans(len(self.centers), random_state=random_state).fit(given)
        self.centers.copy_(model.cluster_centers_)
        return self

    @torch.no_grad()
    def move_to_means(self, points: Tensor, rate: float = 1.0) -> "SoftAssign":
        """Do one step of soft k-means: an update of the centers without an optimiser.

        Parameters
        ----------
        points : Tensor of shape (n, n_features)
            A batch of points.
        rate : float, default=1.0
            Fraction of the way that centers move towards the means of this batch.

        Returns
        -------
        SoftAssign
            The layer itself.

        See Also
        --------
        soft_sums : Sums and masses, from which the means are computed.

        Examples
        --------
        >>> import torch, lloydformer as lf
        >>> layer = lf.nn.SoftAssign(1, 1)
        >>> layer.move_to_means(torch.tensor([[1.0], [3.0]])).centers.tolist()
        [[2.0]]
        """
        sums, masses, _ = soft_sums(points, self.centers, self.inverse_temperature)
        # a center whose masses vanish stays where it is
        means = means_or(sums, masses, self.centers.to(sums.dtype))
        self.centers.lerp_(means.to(self.centers.dtype), rate)
        return self
