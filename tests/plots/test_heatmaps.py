"""Attention maps, weights with the names of subspaces, and matrices of means."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import lloydformer as lf
from lloydformer import plots
from lloydformer.plots.heatmaps import pair_matrix
from lloydformer.plots.palette import SIGNED, SIGNED_WORDS


def test_queries_are_rows_and_keys_are_columns(trace: lf.Trace) -> None:
    attention = trace["layers.0.encoder_cross.attention"]
    ax = plots.attention_map(attention)
    np.testing.assert_array_equal(ax.images[0].get_array(), attention)
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("4 queries", "2 keys")


def test_labels_put_clusters_next_to_each_other() -> None:
    attention = torch.arange(6.0).reshape(3, 2)
    ax = plots.attention_map(
        attention, query_labels=torch.tensor([1, 0, 1]), names=("points", "centers")
    )
    np.testing.assert_array_equal(ax.images[0].get_array(), attention[[1, 0, 2]])
    assert ax.get_ylabel() == "3 points, by label"


def test_keys_are_ordered_by_their_own_labels() -> None:
    attention = torch.arange(6.0).reshape(3, 2)
    ax = plots.attention_map(attention, key_labels=torch.tensor([1, 0]))
    np.testing.assert_array_equal(ax.images[0].get_array(), attention[:, [1, 0]])


def test_a_map_of_zeros_is_drawn() -> None:
    assert plots.attention_map(torch.zeros(2, 2)).images[0].get_clim()[1] > 0


def test_both_axes_name_the_subspaces() -> None:
    circuit = lf.Circuit(lf.recipes.lloyd_dot(), n_features=3, n_clusters=4)
    ax = plots.weights(circuit, head="encoder_cross", matrix="key")
    names = ["position", "squared norm", "half", "assignment"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == names
    assert [tick.get_text() for tick in ax.get_yticklabels()] == names
    assert ax.get_xticks().tolist() == [1.0, 3.0, 4.0, 6.5]


def test_a_circuit_shows_the_matrix_of_its_head() -> None:
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    shown = plots.weights(circuit, head="decoder_self", matrix="value").images[0].get_array()
    np.testing.assert_array_equal(shown, np.diag([-1.0, -1.0, 0.0, 0.0, 0.0]))


def test_the_separation_is_part_of_the_matrix() -> None:
    circuit = lf.Circuit(lf.recipes.trimmed(), n_features=1, n_clusters=2)
    ax = plots.weights(circuit, head="decoder_cross", separation=4.0)
    np.testing.assert_array_equal(ax.images[0].get_array(), np.diag([1.0, 2.0, 2.0]))


def test_a_plain_matrix_needs_no_space() -> None:
    ax = plots.weights(torch.eye(3))
    assert ax.get_xticks().size == 0
    space = lf.Circuit(lf.recipes.lloyd(), 1, 2).space
    assert len(plots.weights(torch.eye(3), space=space).get_xticks()) == 2


def test_an_unknown_head_is_refused_with_those_that_exist() -> None:
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    with pytest.raises(ValueError, match="head: found 'cross'; this circuit has encoder_cross"):
        plots.weights(circuit, head="cross")


def test_the_words_for_the_colours_are_those_that_one_sees():
    """Each end of SIGNED is nearest to the basic colour that SIGNED_WORDS names."""
    basic = ("red", "brown", "orange", "yellow", "green", "blue", "purple", "white", "black")

    def seen(colour: str) -> str:
        return min(basic, key=lambda name: np.abs(np.subtract(to_rgb(name), to_rgb(colour))).sum())

    negative, zero, positive = (seen(SIGNED[place]) for place in (0, 2, 4))
    assert f"{positive} is positive, {negative} negative, {zero} 0" == SIGNED_WORDS
    assert SIGNED_WORDS in plots.weights.__doc__.lower().replace("\n", " ")


def test_a_matrix_starts_at_the_bottom_and_leaves_gaps():
    ax = Figure().subplots()
    image = pair_matrix([[0.0, 1.0], [None, 2.0]], ["1", "2"], ["a", "b"], top=4.0, ax=ax)
    assert image.get_clim() == (0.0, 4.0)
    assert ax.get_ylim() == (-0.5, 1.5)
    assert np.isnan(image.get_array().filled(np.nan)[1, 0])
