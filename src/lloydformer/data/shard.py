"""The rows that one of several processes has."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shard:
    """The rows of this rank, when several processes fit one model together.

    Under `torchrun` every rank passes its own rows to `fit`: `model.fit(lf.Shard(X))`. All ranks
    call `fit` at the same time, with the same parameters. The data are the rows of all ranks, one
    after the other by the numbers of the ranks. Every rank gets the same centers, to the last bit
    those of one process that has all rows; `labels_` are those of its own rows.

    Parameters
    ----------
    rows : array-like, Tensor or Blocks of shape (n_samples, n_features)
        The rows of this rank: dense, in float32 or float64. There may be none: an array of shape
        (0, n_features).

    Raises
    ------
    ValueError
        If `rows` is a shard itself.

    See Also
    --------
    KMeans : Its `fit` takes a shard, as that of every estimator does.

    Examples
    --------
    Without `torchrun` this process is the only rank.

    >>> import lloydformer as lf
    >>> shard = lf.Shard([[0.0], [1.0], [8.0], [9.0]])
    >>> lf.KMeans(2, init=[[0.0], [9.0]]).fit(shard).labels_
    array([0, 0, 1, 1], dtype=int32)
    """

    rows: Any

    def __post_init__(self) -> None:
        if isinstance(self.rows, Shard):
            raise ValueError("rows: found a Shard in a Shard; pass the rows of this rank")
