"""CircuitClusterer: any recipe, lowered where possible, literal otherwise."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lloydformer as lf
from lloydformer import recipes
from lloydformer.circuits.activations import Gumbel

RNG = np.random.default_rng(6)
X = RNG.normal(size=(40, 3)) + RNG.uniform(-5, 5, size=(3, 3))[np.arange(40) % 3]


def smeared():
    """Medoids whose draws are smeared over several points: a recipe that does not lower."""
    base = recipes.medoids()
    return replace(base, decoder_cross=replace(base.decoder_cross, activation=Gumbel(0.5)))


def test_no_recipe_is_lloyds():
    model = lf.CircuitClusterer(3, init=X[:3]).fit(X)
    assert model.lowered_
    np.testing.assert_array_equal(model.labels_, lf.KMeans(3, init=X[:3]).fit(X).labels_)


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        (recipes.soft(0.3), lf.SoftKMeans(inverse_temperature=0.3)),
        (recipes.spherical(), lf.SphericalKMeans()),
        (recipes.trimmed(0.8), lf.TrimmedKMeans(keep=0.8)),
        (recipes.robust(0.02), lf.RobustKMeans(inverse_temperature=0.02)),
        (recipes.medoids(2.0), lf.KMedoids(method="paper", separation=2.0)),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_a_recipe_is_its_estimator(recipe, kind):
    """Labels of trimmed points and the draws of medoids included."""
    how = {"n_clusters": 3, "init": X[:3], "max_iter": 8, "random_state": 3}
    model = lf.CircuitClusterer(recipe=recipe, **how).fit(X)
    expected = clone(kind).set_params(**how).fit(X)
    assert model.lowered_
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_, atol=1e-12)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


@pytest.mark.parametrize("ties", ["first", "average"])
def test_averaged_ties_run_literally(ties):
    """0, 1, 2 with centers 0 and 2: the middle point is shared, so neither counts it."""
    model = lf.CircuitClusterer(2, recipe=recipes.lloyd(ties), init=[[0.0], [2.0]], max_iter=1).fit(
        [[0.0], [1.0], [2.0]]
    )
    assert model.lowered_ is (ties == "first")
    expected = [0.5, 2.0] if ties == "first" else [0.0, 2.0]
    assert model.cluster_centers_.flatten().tolist() == expected


def test_a_literal_run_is_the_circuit():
    points = torch.from_numpy(X)
    model = lf.CircuitClusterer(3, recipe=recipes.lloyd("average"), init=X[:3], max_iter=4)
    model.fit(points)
    trace = lf.Circuit(recipes.lloyd("average"), 3, 3)(points, points[:3], 5)
    torch.testing.assert_close(model.cluster_centers_, trace.centers[4], rtol=0, atol=1e-9)
    assert torch.equal(model.labels_.long(), trace.labels[4])
    np.testing.assert_allclose(model.objective_history_, trace.objective[:5], rtol=1e-9)
    assert model.n_iter_ == 4


def test_labels_of_a_literal_run_are_those_of_predict():
    """Two centers are equal as users get them, and differ by rounding before."""
    rows = np.random.default_rng(167).integers(0, 4, size=(30, 2)) / 10 + 0.1
    model = lf.CircuitClusterer(3, recipe=recipes.lloyd("average"), init=rows[:3], max_iter=3)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\)"):
        model.fit(rows)
    np.testing.assert_array_equal(model.labels_, model.predict(rows))


def test_ctrl_c_in_a_callback_keeps_the_layer_that_it_was_called_for():
    def stop(progress):
        if progress.iteration == 1:
            raise KeyboardInterrupt

    how = {"n_clusters": 3, "recipe": recipes.lloyd("average"), "init": X[:3]}
    stopped = lf.CircuitClusterer(max_iter=6, callback=stop, **how)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X)
    expected = lf.CircuitClusterer(max_iter=2, **how).fit(X)
    assert stopped.n_iter_ == expected.n_iter_ == 2
    np.testing.assert_array_equal(stopped.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(stopped.labels_, expected.labels_)
    np.testing.assert_array_equal(stopped.objective_history_, expected.objective_history_)


def test_a_literal_run_draws_by_its_random_state():
    how = {"recipe": smeared(), "init": X[:3], "max_iter": 2}
    one, again, other = (
        lf.CircuitClusterer(3, random_state=s, **how).fit(X).cluster_centers_ for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_literal_circuits_have_no_weights():
    model = lf.CircuitClusterer(3, recipe=recipes.lloyd("average"))
    with pytest.raises(
        ValueError, match="sample_weight: literal circuits do not support it; encoder_cross"
    ):
        model.fit(X, sample_weight=np.ones(40))


def test_layer_norm_needs_rows_that_sum_to_zero():
    """As the circuit does; the plan alone would not notice."""
    with pytest.raises(ValueError, match="sum to"):
        lf.CircuitClusterer(3, recipe=recipes.spherical("layer")).fit(X)
