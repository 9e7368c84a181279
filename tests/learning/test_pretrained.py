"""Shipped weights match their cards; damaged files are refused."""

import json
import shutil
from importlib.resources import files

import pytest
import torch

import lloydformer as lf
from lloydformer.learning import available, compare, load_pretrained
from lloydformer.learning.export import TEST_SEED, card_names, compare_runs, export_runs
from lloydformer.learning.families import FAMILIES

WEIGHTS = files("lloydformer.learning") / "weights"
SHIPPED = ["d4-k6", "d8-k6", "d16-k6", "d32-k6", "d32-k10", "d32-k16", "d32-k25"]


def test_what_is_shipped():
    assert available() == [*SHIPPED, "symmetric"]


@pytest.mark.parametrize("name", SHIPPED)
def test_cards_hold_the_papers_protocol_and_the_log(name):
    found = load_pretrained(name)
    assert found.settings == lf.learning.Settings(
        lf.learning.Tasks(found.settings.n_features, found.settings.n_clusters)
    )
    assert found.settings.name == name
    assert found.run.loss_temperature == 0.1
    rows = found.card["log"]["rows"]
    assert [row[0] for row in rows] == list(range(50, 10_001, 50))
    assert rows[-1][2] == pytest.approx(found.card["scores"]["relative_objective"], rel=1e-5)
    assert rows[-1][2] < 1.0  # better than a Lloyd step
    logs = found.card["scores"]["mean_log_objective"]
    assert logs["transformer"] < logs["lloyd"] < logs["initial"]


@pytest.mark.parametrize("name", ["d4-k6", "d8-k6"])
def test_weights_score_as_their_card_says(name):
    """On 40 tasks in place of the 320 of the card, with tolerances for so few."""
    found = load_pretrained(name)
    ours = compare(found.layer, found.weights, found.settings.tasks, n_tasks=40, seed=TEST_SEED)
    logs = found.card["scores"]["mean_log_objective"]
    initial, lloyd, transformer = ours.row()
    assert initial == pytest.approx(logs["initial"], abs=0.1)
    assert lloyd - transformer == pytest.approx(logs["lloyd"] - logs["transformer"], abs=0.2)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_the_papers_table_of_families(family):
    """tab:mix-res, within 0.05, with the order of Lloyd and transformer in every family."""
    paper = {
        "normal": (6.3430, 5.2636, 5.0052),
        "cauchy": (3.4078, 3.2528, 3.3443),
        "gumbel": (6.2408, 5.2557, 5.0723),
        "laplace": (6.0447, 5.1014, 4.9505),
        "lognormal": (6.2965, 5.2406, 5.0026),
    }[family]
    found = load_pretrained("d32-k10")
    ours = compare(found.layer, found.weights, found.settings.tasks, family).row()
    assert ours == pytest.approx(paper, abs=0.05)
    assert (ours[2] < ours[1]) == (paper[2] < paper[1])


def test_the_circuit_gives_the_same_centers():
    found = load_pretrained("d4-k6")
    points, centers = found.settings.tasks.draw(("normal",), torch.tensor([4]), torch.tensor(0), 2)
    ours = found.layer(found.weights, points, centers)[0]
    trace = found.circuit()(points[0], centers[0], n_layers=1)
    torch.testing.assert_close(trace.centers[:, -1], ours, rtol=1e-4, atol=1e-5)


def test_a_layer_works_for_another_number_of_points():
    found = load_pretrained("d4-k6")
    tasks = lf.learning.Tasks(4, 6, 200)
    _, lloyd, transformer = compare(found.layer, found.weights, tasks, n_tasks=30).row()
    assert transformer < lloyd + 0.1


@pytest.fixture
def copied(tmp_path):
    for suffix in ("json", "safetensors"):
        with (WEIGHTS / f"d4-k6.{suffix}").open("rb") as file:
            (tmp_path / f"mine.{suffix}").write_bytes(file.read())
    return tmp_path / "mine.json"


def test_weights_are_loaded_by_path(copied):
    for path in (copied, str(copied.with_suffix(".safetensors"))):
        assert torch.equal(load_pretrained(path).weights, load_pretrained("d4-k6").weights)


def edited(card, **change):
    return json.dumps({**json.loads(card), **change}).encode()


DAMAGE = {
    "truncated weights": ("safetensors", lambda data: data[:-5]),
    "one bit of the weights": ("safetensors", lambda d: d[:-9] + bytes([d[-9] ^ 4]) + d[-8:]),
    "no weights": ("safetensors", lambda data: b""),
    "half a card": ("json", lambda data: data[:200]),
    "another library": ("json", lambda data: edited(data, library="other")),
    "another format": ("json", lambda data: edited(data, format=7)),
    "another sum": ("json", lambda data: edited(data, sha256="0")),
    "a wrong run": ("json", lambda data: edited(data, run={"seed": -3})),
    "unknown settings": ("json", lambda data: edited(data, settings={"depth": 3})),
    "no object": ("json", lambda data: b"[1, 2]"),
    "pickle": ("json", lambda data: b"\x80\x04\x95."),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_weights_are_refused(copied, damage):
    suffix, change = DAMAGE[damage]
    path = copied.with_suffix(f".{suffix}")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match="mine"):
        load_pretrained(copied)


def test_weights_of_another_shape_are_refused(copied):
    card = json.loads(copied.read_text())
    card["settings"]["tasks"]["n_clusters"] = 7
    copied.write_text(json.dumps(card))
    with pytest.raises(ValueError, match="its weights are not those of its settings"):
        load_pretrained(copied)


def test_missing_files_are_named(copied):
    copied.with_suffix(".safetensors").unlink()
    with pytest.raises(ValueError, match=r"mine\.safetensors: there is no such file"):
        load_pretrained(copied)
    with pytest.raises(ValueError, match=r"no\.json: there is no such file"):
        load_pretrained(copied.with_name("no.json"))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"found 'd3-k3'; there are d4-k6, .*d32-k25"):
        load_pretrained("d3-k3")


def test_trained_weights_are_exported_and_loaded(settings, runs, tmp_path):
    trained = lf.learning.train(settings, runs, device="cpu")
    assert len(set(card_names(trained))) == len(runs)
    cards = export_runs(tmp_path, trained, compare_runs(trained, n_tasks=4, n_steps=2))
    for number, card in enumerate(cards):
        again = load_pretrained(card)
        assert again.run == runs[number]
        assert torch.equal(again.weights[0], trained.weights[number])
    shutil.rmtree(tmp_path)
