"""Colours of clusters can be told apart, on white and on black, and without seeing green."""

import numpy as np
import pytest

from lloydformer.plots.palette import CLUSTERS, cluster_colour

TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# Machado, Oliveira and Fernandes (2009), for linear RGB.
WITHOUT_GREEN = np.array(
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]
)


def linear(colours):
    values = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def oklab(values):
    """Ottosson's perceptual space, in which a just noticeable difference is about 0.02."""
    return np.cbrt(np.clip(values, 0, 1) @ TO_LMS.T) @ TO_LAB.T


@pytest.mark.parametrize(("seen", "least"), [(np.eye(3), 0.1), (WITHOUT_GREEN, 0.04)])
def test_colours_can_be_told_apart(seen, least):
    places = oklab(linear(CLUSTERS) @ seen.T)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 9 * np.eye(len(places))
    assert len(CLUSTERS) == 20
    assert apart.min() > least


def test_colours_are_seen_on_white_and_on_black():
    lightness = oklab(linear(CLUSTERS))[:, 0]
    assert lightness.min() > 0.4
    assert lightness.max() < 0.87


def test_colours_repeat_after_the_last():
    assert cluster_colour(20) == cluster_colour(0) != cluster_colour(19)
