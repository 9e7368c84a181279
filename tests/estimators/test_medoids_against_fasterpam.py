"""The paper's sampler beside FasterPAM, a search for the best swap: a report, not a contest."""

from pathlib import Path

import kmedoids
import numpy as np
import pytest

import lloydformer as lf

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"
NAMES = (
    "ecoli", "glass", "ionosphere", "kc2", "mfeat-fourier", "mfeat-zernike", "optdigits",
    "pendigits", "segment", "phoneme",
)  # fmt: skip
K = 10

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="../shared/data is not here")


def scaled(name: str) -> np.ndarray:
    """At most 500 rows, columns in [0, 1]."""
    with np.load(FOLDER / f"{name}.npz") as file:
        X = file["X"].astype(float)
    X = X[np.random.default_rng(0).permutation(len(X))[:500]]
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / np.where(high > low, high - low, 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_loss_of_both(name, capsys):
    X = scaled(name)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    pam = kmedoids.fasterpam(squares, K, random_state=0).loss
    model = lf.KMedoids(K, method="paper", random_state=0, max_iter=100)
    ours = model.fit(X).inertia_
    last = model.set_params(return_last=True).fit(X).inertia_
    with capsys.disabled():
        print(f"\n{name:16} FasterPAM {pam:9.3f}  best seen {ours:9.3f} (+{ours / pam - 1:.1%})"
              f"  last drawn {last:9.3f} (+{last / pam - 1:.1%})")  # fmt: skip
    assert np.isfinite(ours)
    assert 0.999 * pam <= ours <= last
