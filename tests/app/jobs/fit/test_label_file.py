"""Distances in the file of labels are those of the fit, at any scale of the data."""

import numpy as np
import pytest
import torch
from array_table import open_array

from lloydformer.app.jobs.fit.label_file import write_labels
from lloydformer.profiles.assignment import Assignment


def written(distances, path):
    clusters = torch.zeros(len(distances), dtype=torch.long)
    table, _ = open_array(np.zeros((len(distances), 1)))
    with path.open("wb") as file:
        write_labels(file, "csv", Assignment(clusters, torch.tensor(distances), None), table)
    return [float(line.split(",")[2]) for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("scale", [1e-200, 1e-40, 1e-20, 1.0, 1e30, 1e39, 1e150])
def test_distances_at_any_scale(scale, tmp_path):
    distances = np.array([0.0, 0.25, 3.0]) * scale
    np.testing.assert_allclose(written(distances, tmp_path / "labels.csv"), distances, rtol=1e-6)
