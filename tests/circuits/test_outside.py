"""What stands outside of the transformer: recorded in the trace, and left out as printed."""

import warnings
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.outside import EXPLAINED, Outside
from lloydformer.circuits.recipes import IN_TABLE

POINTS = torch.tensor([[0.0], [1.0], [5.0], [6.0]], dtype=torch.float64)


def run(recipe, points=POINTS, centers=None, **options):
    centers = points[[0, -1]] if centers is None else centers
    circuit = lf.Circuit(recipe, points.shape[-1], centers.shape[-2], **options)
    return circuit(points, centers, n_layers=2, seed=3)


def test_the_trace_records_the_values_of_every_layer():
    """The median 3 becomes 4, a multiple of 2. The farthest own points are 1, then 1/2 away."""
    first, second = run(lf.recipes.trimmed()).outside
    assert first.origin.tolist() == [[4.0]]
    assert first.separation.item() == pytest.approx(1.001)
    assert second.separation.item() == pytest.approx(0.25 * 1.001)
    assert first.gap.flatten().tolist() == 2 * [first.separation.item()]
    assert (first.ties, first.noise, first.log_shares) == ("first", None, False)
    assert run(lf.recipes.medoids()).outside[0].noise == 3


def test_a_center_without_points_uses_all_of_them():
    centers = torch.tensor([[0.0], [0.0], [6.0]], dtype=torch.float64)
    gap = run(lf.recipes.trimmed(), centers=centers).outside[0].gap
    assert gap.isinf().flatten().tolist() == [False, True, False]


def test_a_separation_that_is_given_is_recorded():
    assert run(lf.recipes.medoids(7.0)).outside[1].separation.item() == 7.0


def test_the_tolerance_is_that_of_each_score():
    """Distances 0, 1, 25, 36 of the first center: rounding grows with them."""
    outside = run(lf.recipes.lloyd("average")).outside[0]
    assert outside.tolerance.shape == (4, 2)
    assert outside.tolerance[0, 0] == 0
    assert (outside.tolerance[:, 0].diff() > 0).all()
    assert outside.tolerance.max() < 1e-12
    assert outside.share_tolerance == 1 / 16
    assert run(lf.recipes.lloyd("first")).outside[0].tolerance is None


def test_only_soft_recipes_keep_logarithms():
    assert run(lf.recipes.soft()).outside[0].log_shares
    assert run(lf.recipes.soft_dot()).outside[0].log_shares
    assert not run(lf.recipes.lloyd()).outside[0].log_shares


def test_printing():
    words = str(run(lf.recipes.trimmed(ties="average")).outside[0])
    names = [line.split()[0] for line in words.splitlines()]
    assert names == ["origin", "ties", "separation", "gap", "tolerance"]


@pytest.mark.parametrize("make", IN_TABLE, ids=lambda make: make.__name__)
def test_as_printed_nothing_comes_from_outside(make):
    points = torch.nn.functional.normalize(torch.arange(12.0).reshape(6, 2) - 5, dim=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        outside = run(make(), points, as_in_paper=True).outside[0]
    assert not outside.origin.any()
    assert outside.ties in (None, "average")
    assert outside.tolerance is None
    assert outside.share_tolerance is None
    assert not outside.log_shares
    assert outside.gap is None or outside.gap.flatten().tolist() == [torch.inf, torch.inf]
    given = make().given_separation or 0.0
    assert outside.separation is None or outside.separation.item() == given


def test_as_printed_shows_what_the_origin_is_for():
    """Data far from zero: the residual stream loses digits without an origin."""
    near = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    points = near + 1e6
    true = run(lf.recipes.lloyd(), points - 1e6).centers[-1]
    exact, printed = (
        (run(lf.recipes.lloyd(), points, as_in_paper=out).centers[-1] - 1e6 - true).abs().max()
        for out in (False, True)
    )
    assert exact < 2e-10
    assert printed > 2 * exact


@pytest.mark.parametrize("recipe", [lf.recipes.lloyd(), lf.recipes.soft(5.0)])
def test_the_loss_far_from_zero_is_that_of_the_errata(recipe):
    """One number, in one place: item 8 of docs/errata.md."""
    lost = []
    for seed in range(10):
        near = torch.randn(
            60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
        )
        points = near + 1e6
        spread = (points - points.mean(dim=0)).norm(dim=1).max()
        printed = run(recipe, points, as_in_paper=True).centers[1] - 1e6
        lost.append(((printed - run(recipe, points - 1e6).centers[1]).abs().max() / spread).item())
    assert 3e-11 < max(lost) < 3e-10
    page = Path(__file__).parents[2] / "docs" / "errata.md"
    words = " ".join(page.read_text(encoding="utf-8").split())
    assert "loses about 1e-10 of the spread in a layer at a shift of 10^6" in words


def test_as_printed_shows_what_the_separation_is_for():
    true = run(lf.recipes.trimmed(0.5)).centers[-1]
    assert not torch.equal(run(lf.recipes.trimmed(0.5), as_in_paper=True).centers[-1], true)


def test_as_printed_shows_what_the_tolerance_is_for():
    """0.2 lies midway between 0.1 and 0.3; in floating point it is nearer to the latter."""
    points = torch.tensor([[0.0], [0.1], [0.2], [0.3]], dtype=torch.float64)
    assert run(lf.recipes.lloyd("average"), points, points[[1, 3]]).assignments[0, 2, 0] == 0.5
    printed = run(lf.recipes.lloyd("average"), points, points[[1, 3]], as_in_paper=True)
    assert printed.assignments[0, 2, 0] == 0


def test_as_printed_shows_what_logarithms_are_for():
    far = torch.tensor([[0.0], [100.0]], dtype=torch.float64)
    assert run(lf.recipes.soft(), centers=far).centers.isfinite().all()
    with pytest.warns(RuntimeWarning, match="a center is not a number"):
        run(lf.recipes.soft(), centers=far, as_in_paper=True)


def test_a_staged_recipe_cannot_do_without():
    with pytest.raises(ValueError, match="as_in_paper: found True for 'relocating'"):
        lf.Circuit(lf.recipes.relocating(), 1, 2, as_in_paper=True)


def test_the_page_explains_every_number():
    page = Path(__file__).parents[2] / "docs" / "walk.md"
    rows = [f"| `{name}` | {what} | {without} |" for name, (what, without) in EXPLAINED.items()]
    table = page.read_text(encoding="utf-8").split("<!-- outside -->")[1].split("<!-- end -->")[0]
    assert table.strip().splitlines()[2:] == rows
    assert set(EXPLAINED) == {field.name for field in fields(Outside)}
