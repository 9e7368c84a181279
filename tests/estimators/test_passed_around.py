"""What users pass around: weights of pandas, bars in other processes, blocks in a pipeline."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydformer as lf

X = np.random.default_rng(0).normal(size=(60, 3))


def test_weights_that_cannot_be_written_give_no_warning():
    weights = pd.Series(np.ones(60)).to_numpy()
    weights.flags.writeable = False
    model = lf.KMeans(3, random_state=0).fit(X, sample_weight=weights)
    assert np.isfinite(model.score(X, sample_weight=weights))
    lf.KMeans(3, random_state=0).partial_fit(X, sample_weight=weights)
    assert weights.sum() == 60


def test_a_bar_in_another_process_shows_nothing():
    with lf.ProgressBar() as bar:
        model = lf.KMeans(2, random_state=0, callback=bar)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.fit(X).labels_, model.fit(X).labels_)
    with pytest.raises(RuntimeError, match="with statement"):
        model.fit(X)


@pytest.mark.long
def test_grid_search_with_processes():
    with lf.ProgressBar() as bar:
        search = GridSearchCV(
            lf.KMeans(random_state=0, callback=bar), {"n_clusters": [2, 3]}, cv=2, n_jobs=2
        )
        assert search.fit(X).best_params_["n_clusters"] == 3


def test_blocks_say_why_a_pipeline_cannot_take_them():
    blocks = lf.data.open_dataset(X)
    with pytest.raises(TypeError, match=r"lf\.data\.open_dataset\(\.\.\., scale=\.\.\.\)"):
        make_pipeline(StandardScaler(), lf.KMeans(2)).fit(blocks)
    assert lf.KMeans(2, random_state=0).fit(blocks).labels_.shape == (60,)
