"""Operators and the module of soft assignment: values, gradients, compilation."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.nn import operators


def problem(n=7, k=3, d=2, seed=0, dtype=torch.float64):
    drawn = torch.Generator().manual_seed(seed)
    shapes = ((n, d), (k, d), (n,))
    x, c, w = (torch.randn(shape, generator=drawn, dtype=torch.float64) for shape in shapes)
    return x.to(dtype), c.to(dtype), w.abs().to(dtype)


def plainly(x, c, gamma):
    """Shares and energies as they are defined, by autograd's own operators."""
    scores = -gamma * (x[:, None] - c).square().sum(dim=-1)
    return scores.softmax(dim=1), -scores.logsumexp(dim=1) / gamma


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 4), st.sampled_from([0.1, 1.0, 30.0]))
def test_values_and_gradients_are_those_of_the_definition(n, k, d, gamma):
    x, c, w = (tensor.requires_grad_() for tensor in problem(n, k, d, seed=n + 10 * k))
    p, energies = plainly(x, c, gamma)
    expected = (p @ c, energies, (p * w[:, None]).T @ x, (p * w[:, None]).sum(0), energies @ w)
    found = (*lf.nn.soft_assign(x, c, gamma), *lf.nn.soft_sums(x, c, gamma, w))
    drawn = torch.Generator().manual_seed(n)
    for want, got in zip(expected, found, strict=True):
        torch.testing.assert_close(got, want)
    by = [torch.randn(part.shape, generator=drawn, dtype=part.dtype) for part in expected]
    wanted, got = (
        torch.autograd.grad(sum((a * b).sum() for a, b in zip(parts, by, strict=True)), (x, c, w))
        for parts in (expected, found)
    )
    for want, have in zip(wanted, got, strict=True):
        torch.testing.assert_close(have, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("gamma", [0.2, 3.0])
def test_gradients_are_those_of_finite_differences(gamma):
    x, c, w = (tensor.requires_grad_() for tensor in problem())
    assert torch.autograd.gradcheck(lambda x, c: lf.nn.soft_assign(x, c, gamma), (x, c))
    assert torch.autograd.gradcheck(lambda x, c, w: lf.nn.soft_sums(x, c, gamma, w), (x, c, w))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("grad", [pytest.param(False, marks=pytest.mark.long), True])
def test_the_operators_are_registered_as_torch_wants_them(dtype, grad):
    x, c, w = (tensor.requires_grad_(grad) for tensor in problem(dtype=dtype))
    gamma = torch.tensor(2.0, dtype=dtype, requires_grad=grad)
    torch.library.opcheck(operators._assign, (x, c, gamma))
    torch.library.opcheck(operators._sums, (x, c, w, gamma))


def test_blocks_of_rows_do_not_change_the_result(monkeypatch):
    x, c, w = (tensor.requires_grad_() for tensor in problem(50, 4, 3))

    def everything():
        parts = (*lf.nn.soft_assign(x, c, 2.0), *lf.nn.soft_sums(x, c, 2.0, w))
        return [*parts, *torch.autograd.grad(sum(part.square().sum() for part in parts), (x, c, w))]

    whole = everything()
    monkeypatch.setattr(operators, "_CELLS", 4 * 7)
    for one, other in zip(whole, everything(), strict=True):
        torch.testing.assert_close(one, other)


def test_one_pass_is_one_iteration_of_soft_kmeans():
    x, c, w = problem(60, 4, 3)
    sums, masses, energy = lf.nn.soft_sums(x, c, 2.0, w)
    model = lf.SoftKMeans(4, inverse_temperature=2.0, init=c, max_iter=1, tol=0).fit(
        x, sample_weight=w
    )
    torch.testing.assert_close(sums / masses[:, None], model.cluster_centers_)
    assert energy.item() == pytest.approx(model.objective_history_[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    x, c, _ = problem(20, 3, 2, dtype=dtype)
    rounded = lf.nn.soft_assign(x, c)
    exact = lf.nn.soft_assign(x.float(), c.float())
    for have, want in zip(rounded, exact, strict=True):
        assert have.dtype == dtype
        torch.testing.assert_close(have, want.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_of_half_precision_do_not_overflow(dtype):
    x = (30 + torch.randn(8000, 2, generator=torch.Generator().manual_seed(0))).to(dtype)
    sums, masses, energy = lf.nn.soft_sums(x, x[:3].clone())
    assert sums.dtype == masses.dtype == energy.dtype == torch.float32
    torch.testing.assert_close(sums.sum(dim=0), x.float().sum(dim=0), rtol=1e-5, atol=0.0)
    layer = lf.nn.SoftAssign(3, 2).start_at(x.float()).to(dtype).move_to_means(x)
    assert layer.centers.dtype == dtype
    assert (layer.centers.float() - 30).abs().max() < 5


def test_leading_axes():
    x, c, _ = problem(12, 3, 2)
    mixtures, energies = lf.nn.soft_assign(x.view(3, 4, 2), c)
    flat = lf.nn.soft_assign(x, c)
    assert torch.equal(mixtures.view(12, 2), flat[0])
    assert torch.equal(energies.view(12), flat[1])
    assert lf.nn.soft_assign(x[:0], c)[0].shape == (0, 2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh())
        self.assign = lf.nn.SoftAssign(3, 8, inverse_temperature=2.0)

    def forward(self, x):
        mixtures, energies = self.assign(self.encode(x))
        return energies.mean() + 0.1 * mixtures.square().mean()


def losses(compile_with, steps=5):
    torch.manual_seed(0)
    net, x = Net(), torch.randn(64, 4)
    run = net if compile_with is None else torch.compile(net, fullgraph=True, backend=compile_with)
    optimiser, seen = torch.optim.SGD(net.parameters(), lr=0.1), []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = run(x)
        loss.backward()
        optimiser.step()
        seen.append(loss.item())
    return seen


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler has its own
def test_a_compiled_model_trains_to_the_same_loss(backend):
    plain = losses(None)
    assert plain[-1] < plain[0]
    assert losses(backend) == pytest.approx(plain, rel=1e-5)


def test_the_module_starts_at_means_and_moves_to_means():
    x = torch.cat([torch.randn(30, 2), torch.randn(30, 2) + 9])
    layer = lf.nn.SoftAssign(2, 2, inverse_temperature=50.0).start_at(x, random_state=0)
    model = lf.KMeans(2, random_state=0).fit(x)
    assert torch.equal(layer.labels(x), model.labels_.long())
    torch.testing.assert_close(layer.centers.data, model.cluster_centers_)
    layer.centers.data += 0.5
    layer.move_to_means(x, rate=0.5)
    torch.testing.assert_close(layer.centers.data, model.cluster_centers_ + 0.25)
    again = lf.nn.SoftAssign(2, 2, inverse_temperature=50.0)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(x)[0], layer(x)[0])


@pytest.mark.parametrize(
    ("x", "c", "gamma", "words"),
    [
        (torch.ones(3, 2), torch.ones(2, 2), 0.0, "inverse_temperature: found 0.0"),
        (torch.ones(3, 2), torch.ones(2, 2), float("inf"), "inverse_temperature: found inf"),
        (torch.ones(3, 2), torch.ones(2), 1.0, r"centers: found shape \(2,\)"),
        (torch.ones(3, 2), torch.ones(0, 2), 1.0, r"centers: found shape \(0, 2\)"),
        (torch.ones(3, 2), torch.ones(2, 3), 1.0, r"points: found shape \(3, 2\)"),
        (torch.ones(3, 2), torch.ones(2, 2).double(), 1.0, "centers: found dtype torch.float64"),
    ],
)
def test_wrong_arguments_are_named(x, c, gamma, words):
    for function in (lf.nn.soft_assign, lf.nn.soft_sums):
        with pytest.raises(ValueError, match=words):
            function(x, c, gamma)


def test_weights_of_another_length():
    with pytest.raises(ValueError, match=r"sample_weight: found shape \(2,\) for 3 points"):
        lf.nn.soft_sums(torch.ones(3, 2), torch.ones(2, 2), 1.0, torch.ones(2))


@pytest.mark.parametrize("far", [1e2, 1e4])
def test_data_far_from_zero_lose_no_digits(far):
    x, c, w = problem(50, 4, 3, dtype=torch.float32)
    x, c = x + far, c + far
    single = (*lf.nn.soft_assign(x, c), lf.nn.soft_sums(x, c, 1.0, w)[1])
    double = lf.nn.soft_assign(x.double(), c.double())
    double = (*double, lf.nn.soft_sums(x.double(), c.double(), 1.0, w.double())[1])
    for have, want in zip(single, double, strict=True):
        torch.testing.assert_close(have.double(), want, rtol=1e-5, atol=1e-5)


def test_autocast_and_half_precision():
    layer, x = lf.nn.SoftAssign(3, 4), torch.randn(6, 4)
    with torch.autocast("cpu", torch.bfloat16):
        mixtures, energies = layer(torch.nn.Linear(4, 4)(x))
    assert mixtures.dtype == torch.float32
    assert energies.shape == (6,)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        assert layer.labels(x.to(dtype)).shape == (6,)
    assert layer.labels(x[:0]).shape == (0,)


def test_autocast_leaves_double_precision_alone():
    x, c, w = problem()
    with torch.autocast("cpu", torch.bfloat16):
        found = (*lf.nn.soft_assign(x, c), *lf.nn.soft_sums(x, c, 1.0, w))
        mixed, _ = lf.nn.soft_assign(x.bfloat16(), c.float())
    for have, want in zip(
        found, (*lf.nn.soft_assign(x, c), *lf.nn.soft_sums(x, c, 1.0, w)), strict=True
    ):
        assert torch.equal(have, want)
    assert mixed.dtype == torch.float32


@pytest.mark.parametrize("gamma", [1e-3, 0.7, 5.0])
def test_a_temperature_can_be_learned(gamma):
    x, c, w = (tensor.requires_grad_() for tensor in problem())
    learned = torch.tensor(gamma, dtype=torch.float64, requires_grad=True)
    found = (*lf.nn.soft_assign(x, c, learned), *lf.nn.soft_sums(x, c, learned, w))
    wanted = (*lf.nn.soft_assign(x, c, gamma), *lf.nn.soft_sums(x, c, gamma, w))
    for have, want in zip(found, wanted, strict=True):
        assert torch.equal(have, want)
    assert torch.autograd.gradcheck(lf.nn.soft_assign, (x, c, learned))
    assert torch.autograd.gradcheck(lf.nn.soft_sums, (x, c, learned, w))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("gamma", [1.0, 100.0, 1e30])
def test_gradients_by_temperature_in_any_precision(dtype, gamma):
    x, c, _ = problem(50, 4, 3, dtype=dtype)
    found = {}
    for name, both in (("here", (x, c)), ("true", (x.double(), c.double()))):
        learned = torch.tensor(gamma, dtype=torch.float64, requires_grad=True)
        mixtures, energies = lf.nn.soft_assign(*both, learned)
        (mixtures.double().square().sum() + energies.double().sum()).backward()
        found[name] = learned.grad
    torch.testing.assert_close(found["here"], found["true"], rtol=0.05, atol=1e-6)


def test_a_learned_temperature_of_the_module_compiles():
    gamma = torch.nn.Parameter(torch.tensor(0.5))
    layer, x = lf.nn.SoftAssign(3, 4, inverse_temperature=gamma), torch.randn(6, 4)
    assert {name for name, _ in layer.named_parameters()} == {"centers", "inverse_temperature"}
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    found = [torch.autograd.grad(ran(x)[1].mean(), gamma)[0] for ran in (compiled, layer)]
    assert found[0] == found[1] != 0


def test_wrong_temperatures_are_named():
    x, c, _ = problem()
    for wrong in (-1.0, 0.0, torch.nan, torch.inf):
        for gamma in (wrong, torch.tensor(wrong)):
            with pytest.raises(ValueError, match=r"inverse_temperature: found .*; pass a number"):
                lf.nn.soft_assign(x, c, gamma)
    with pytest.raises(ValueError, match=r"tensor of shape \(7,\)"):
        lf.nn.soft_sums(x, c, torch.ones(7))
    with pytest.raises(ValueError, match=r"inverse_temperature: found a tensor of shape \(3,\)"):
        lf.nn.SoftAssign(2, 2, torch.nn.Parameter(torch.ones(3)))


def test_wrong_arguments_of_the_module_are_named():
    with pytest.raises(ValueError, match=r"inverse_temperature: found -1.0"):
        lf.nn.SoftAssign(2, 2, inverse_temperature=-1.0)
    with pytest.raises(ValueError, match=r"points: found shape \(9, 1\); pass \(n, 3\)"):
        lf.nn.SoftAssign(2, 3).start_at(torch.randn(9, 1))
