"""Attention maps."""

import numpy as np
import torch

import lloydformer as lf
from lloydformer import plots


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
