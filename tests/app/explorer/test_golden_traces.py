"""The page's interpreter equals Python's circuits, number by number.

Every shipped recipe of one layer on a problem of every family, and 100 recipes with parts of the
menu; the hard families (ties, duplicates, empty clusters, outliers) are among them. The tests
marked `long` draw 20 problems and 200 recipes.
"""

import numpy as np
import pytest
from golden_traces import compared
from javascript import CHROMIUM, needs_javascript

from lloydformer.circuits.recipes import MAKERS
from lloydformer.paper.verify.problems import CONTINUOUS, FAMILIES, HARD

pytestmark = needs_javascript
# Problems of every recipe, and recipes with random parts.
AMOUNTS = [(len((*FAMILIES, *HARD)), 100), pytest.param((20, 200), marks=pytest.mark.long)]


@pytest.fixture(scope="module", params=AMOUNTS, ids=["every family", "many"])
def amounts(request):
    return request.param


@pytest.fixture(scope="module")
def cases(amounts, tmp_path_factory):
    return compared(tmp_path_factory.mktemp("golden"), *amounts)


def ran(cases):
    return [case for case in cases if case["refusal"] is None]


def test_there_are_enough_cases(cases, amounts):
    n_problems, n_random = amounts
    names = {case["name"] for case in cases if not case["name"].startswith("random")}
    assert names >= {
        "lloyd",
        "lloyd_dot",
        "spherical",
        "soft",
        "trimmed",
        "robust",
        "medoids",
        "soft_dot",
        "robust_lifted",
        "lloyd_binary",
        "symmetric",
        "learned",
    }
    assert len(cases) == n_problems * len(names) + n_random
    assert all(c["refusal"] is None for c in cases if c["name"] in names)
    assert 0.3 < sum(c["name"].startswith("random") for c in ran(cases)) / n_random < 0.8


def test_refusals_have_the_same_words(cases):
    assert [(c["refusal"], c["said"]) for c in cases if c["refusal"] != c["said"]] == []


def test_intermediates_have_the_same_names_in_the_same_order(cases):
    assert [c["name"] for c in ran(cases) if c["found"] != c["names"]] == []
    assert all(c["seen"] == len(c["names"]) for c in ran(cases))


def test_every_intermediate_is_equal(cases):
    off = [(c["name"], c["worst"], c["off"]) for c in ran(cases) if float(c["off"]) > 1e-9]
    assert off == []


def test_labels_are_equal_beyond_the_rounding_bound(cases):
    for case in ran(cases):
        differ = np.array(case["labels"]) != np.array(case["freeLabels"])
        assert not (differ & np.array(case["sure"])).any(), case["name"]
    assert np.mean([np.mean(c["sure"]) for c in ran(cases)]) > 0.8


def test_centers_are_equal_from_pythons_tokens(cases):
    """Where rounding decides nothing: a tie in the decoder can turn what a center reads."""
    sure = [
        (case, float(case["centersOff"][t + 1]))
        for case in ran(cases)
        for t, labels in enumerate(case["labels"])
        if labels == case["freeLabels"][t] and all(case["sure"][t])
    ]
    off = [(case["name"], case["family"]) for case, off in sure if off > 1e-9]
    assert [name for name, family in off if family in CONTINUOUS] == []
    assert len(off) < 0.01 * len(sure)
    assert len(sure) > len(ran(cases))


def test_warnings_have_the_same_words(cases):
    assert [c["name"] for c in ran(cases) if c["warning"] != c["warned"]] == []


def test_plain_algorithms_are_equal(cases, amounts):
    known = [c for c in ran(cases) if c["name"] in MAKERS]
    assert [c["name"] for c in known if c["identified"] != c["name"]] == []
    assert [c["name"] for c in known if (c["algorithm"] is None) != (c["plain"] is None)] == []
    off = [
        (c["name"], c["family"], c["plainOff"])
        for c in known
        if c["plain"] and max(map(float, c["plainOff"])) > 1e-9
    ]
    assert off == []
    assert sum(c["plain"] is not None for c in known) > 9 * amounts[0]


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no page is opened")
def test_a_browser_finds_the_same_where_there_is_no_node(tmp_path):
    found = compared(tmp_path, n_problems=2, n_random=20, browser=True)
    test_refusals_have_the_same_words(found)
    test_every_intermediate_is_equal(found)
    assert len(ran(found)) > 24
