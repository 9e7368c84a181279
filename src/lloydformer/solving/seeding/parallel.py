"""k-means||: many candidates in a few passes, and then the best k of them.

Bahmani, Moseley, Vattani, Kumar and Vassilvitskii, "Scalable k-means++", PVLDB 5(7), 2012.
"""

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import Engine
from lloydformer.engines.native.engine import Native, NativeSession
from lloydformer.engines.parts.session import PartsSession
from lloydformer.plans.seeding import Oversample
from lloydformer.plans.session import Session
from lloydformer.solving.seeding.plusplus import kmeans_plusplus
from lloydformer.solving.seeding.random_rows import random_rows

ROUNDS = 5
OVERSAMPLING = 2
"""Candidates of a round for each cluster, in expectation."""


def kmeans_parallel(session: Session, n_clusters: int, rng: np.random.RandomState) -> Tensor:
    """k seeds, (k, d) in float64, after ROUNDS + 1 passes over the data.

    There are more passes only if a few points hold nearly all of the mass, so that there are
    fewer candidates than clusters. Candidates are reduced to k by greedy k-means++, each with the
    weight of the points that are nearest to it.
    """
    seed, most = int(rng.randint(2**31 - 1)), OVERSAMPLING * n_clusters
    candidates = fresh = session.gather(random_rows(session, 1, rng))
    number = 0
    while True:
        known = len(candidates) - len(fresh)
        mass, _, rows, attracted = session.fold(Oversample(fresh, known, most, seed, number))
        enough = number >= ROUNDS and len(candidates) >= n_clusters
        if enough or mass == 0:  # no mass: every point is a candidate already
            return _reduced(_engine_like(session), candidates, attracted, n_clusters, rng)
        fresh, number = session.gather(rows), number + 1
        candidates = torch.cat([candidates, fresh])


def _engine_like(session: Session) -> Engine:
    """An engine for a few points in this process, of the kind that runs the session."""
    if isinstance(session, PartsSession):
        return session.opening.engine_with(1)
    return Native(1) if isinstance(session, NativeSession) else Chunked(1)


def _reduced(
    engine: Engine,
    candidates: Tensor,
    weights: Tensor,
    n_clusters: int,
    rng: np.random.RandomState,
) -> Tensor:
    """Greedy k-means++ among the candidates, which are few enough for a single leaf."""
    zero = torch.zeros_like(candidates[0])
    few = TensorBlocks(candidates, weights, len(candidates), seen_from=zero)
    with engine.open(few) as session:
        return candidates[kmeans_plusplus(session, n_clusters, rng)].double()
