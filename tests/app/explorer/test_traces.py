"""The recorded traces are what their script records, up to the last digits of trained layers."""

import numpy as np
import pytest
from javascript import evaluate, needs_node

from explorer_traces import FOLDER, RECORDED, read


@pytest.mark.parametrize("name", RECORDED)
def test_the_file_is_what_the_script_records(name):
    found, wanted = read(FOLDER / f"{name}.js"), RECORDED[name]()
    assert {**found, "runs": None} == {**wanted, "runs": None}
    assert [run["name"] for run in found["runs"]] == [run["name"] for run in wanted["runs"]]
    for run, again in zip(found["runs"], wanted["runs"], strict=True):
        np.testing.assert_allclose(run["centers"], again["centers"], atol=2e-3)
        np.testing.assert_allclose(run["objective"], again["objective"], rtol=1e-2)
        assert np.mean(np.array(run["labels"]) != np.array(again["labels"])) < 0.01


def test_lloyd_fails_where_the_others_do_not():
    ends = {
        name: {run["name"]: run["objective"][-1] for run in read(FOLDER / f"{name}.js")["runs"]}
        for name in RECORDED
    }
    assert ends["learned"]["learned"] < 0.5 * ends["learned"]["lloyd"]
    assert ends["learned"]["symmetric"] < 0.5 * ends["learned"]["lloyd"]
    assert ends["relocation"]["relocating"] < 0.5 * ends["relocation"]["lloyd"]


@needs_node
def test_live_runs_of_lloyd_on_their_points_are_the_recorded_ones():
    code = """
    const { default: trace } = await import(given);
    const [lloyd] = trace.runs;
    const sizes = { nFeatures: trace.points[0].length, nClusters: lloyd.centers[0].length };
    const live = new interpreter.Circuit(recipes.lloyd, sizes).run(
      trace.points, lloyd.centers[0], { nLayers: lloyd.labels.length });
    say(live.centers.map((rows) => rows.map((row) => [...row])));
    """
    for name in RECORDED:
        live = evaluate(code, (FOLDER / f"{name}.js").as_uri())
        wanted = read(FOLDER / f"{name}.js")["runs"][0]["centers"]
        np.testing.assert_allclose(live, wanted, atol=2e-3)
