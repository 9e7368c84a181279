"""Does everything run on a GPU, and give what the CPU gives? Prints one line per check."""

import time

import numpy as np
import torch

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.plans.assign import NearestSums


def circuits() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(400, 8, dtype=torch.float64, generator=generator)
    beyond = (lf.recipes.soft_dot(), lf.recipes.robust_lifted(), lf.recipes.lloyd_binary())
    for recipe in (*lf.recipes.table(), *beyond):
        x = points / points.norm(dim=1, keepdim=True) if recipe.norm else points
        circuit = lf.Circuit(recipe, n_features=8, n_clusters=6)
        here = circuit(x, x[:6], seed=1)
        there = circuit(x.cuda(), x[:6].cuda(), seed=1)
        away = (there.centers.cpu() - here.centers).abs().max().item()
        differ = (there.labels.cpu() != here.labels).sum().item()
        print(f"circuit {recipe.name:14s} centers {away:.1e} labels {differ}")


def estimators() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 8)) + 4 * rng.integers(0, 3, size=(20_000, 1)) + 5
    w = rng.uniform(0.5, 2, size=len(X))
    for kind in (
        lf.KMeans,
        lf.SoftKMeans,
        lf.SphericalKMeans,
        lf.TrimmedKMeans,
        lf.RobustKMeans,
        lf.KMedoids,
    ):
        model = kind(5, init=X[:5], max_iter=20, random_state=0)
        here = model.fit(X, sample_weight=w)
        centers, labels = here.cluster_centers_, here.labels_
        Y = torch.tensor(X, device="cuda")
        runs = [
            kind(5, init=X[:5], max_iter=20, random_state=0).fit(Y, sample_weight=w)
            for _ in range(2)
        ]
        away = np.abs(runs[0].cluster_centers_.cpu().numpy() - centers).max()
        differ = (runs[0].labels_.cpu().numpy() != labels).sum()
        again = torch.equal(runs[0].cluster_centers_, runs[1].cluster_centers_)
        print(
            f"{kind.__name__:16s} centers {away:.1e} labels {differ} same bits twice {again} "
            f"device {runs[0].labels_.device}"
        )


def speed() -> None:
    for n, d, k in (
        (10_000_000, 2, 5),
        (1_000_000, 32, 10),
        (1_000_000, 64, 100),
        (1_000_000, 128, 1000),
    ):
        X = torch.randn(n, d, device="cuda")
        for leaf in (1 << 18, min(1 << 20, (1 << 27) // max(k, d))):
            data = TensorBlocks(X, leaf=leaf)
            with Chunked().open(data) as session:
                fold = NearestSums(X[:k] - data.origin)
                session.fold(fold)
                torch.cuda.synchronize()
                began = time.perf_counter()
                for _ in range(5):
                    session.fold(fold)
                torch.cuda.synchronize()
                print(
                    f"n {n} d {d} k {k} leaf {leaf}: {(time.perf_counter() - began) * 200:.2f} ms"
                )


if __name__ == "__main__":
    circuits()
    estimators()
    speed()
