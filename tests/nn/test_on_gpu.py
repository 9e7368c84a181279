"""The operators on a GPU beside those on the CPU."""

import pytest
import torch

import lloydformer as lf
from lloydformer.nn import operators

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]


@pytest.mark.parametrize(("n", "k", "d"), [(1, 1, 1), (1000, 7, 3), (20_000, 300, 64)])
def test_values_and_gradients_are_those_of_the_cpu(n, k, d):
    found = []
    for device in ("cpu", "cuda"):
        drawn = torch.Generator().manual_seed(0)
        x, c, w = (
            torch.randn(shape, generator=drawn, dtype=torch.float64).to(device).requires_grad_()
            for shape in ((n, d), (k, d), (n,))
        )
        gamma = torch.tensor(0.5, dtype=torch.float64, device=device, requires_grad=True)
        parts = (*lf.nn.soft_assign(x, c, gamma), *lf.nn.soft_sums(x, c, gamma, w))
        plain = (*lf.nn.soft_assign(x, c, 0.5), *lf.nn.soft_sums(x, c, 0.5, w))
        assert all(torch.equal(a, b) for a, b in zip(parts, plain, strict=True))
        loss = sum(part.square().mean() for part in parts)
        gradients = torch.autograd.grad(loss, (x, c, w, gamma))
        found.append([part.detach().cpu() for part in (*parts, *gradients)])
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-9, atol=1e-9)


def test_the_operators_are_registered_for_the_device():
    x, c = torch.randn(9, 2, device="cuda"), torch.randn(3, 2, device="cuda")
    for gamma in (torch.tensor(2.0), torch.tensor(2.0, device="cuda")):
        torch.library.opcheck(operators._assign, (x, c, gamma))
        torch.library.opcheck(operators._sums, (x, c, x[:, 0].abs(), gamma))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("learned", [False, True])
def test_a_compiled_step_is_the_step(learned):
    x = torch.randn(5000, 16, device="cuda")
    gamma = torch.nn.Parameter(torch.tensor(0.3)) if learned else 0.3
    layer = lf.nn.SoftAssign(8, 16, inverse_temperature=gamma).cuda().start_at(x, random_state=0)
    found = []
    for step in (layer, torch.compile(layer, fullgraph=True)):
        loss = step(x)[1].mean()
        found.append((loss, *torch.autograd.grad(loss, list(layer.parameters()))))
    assert len(found[0]) == 2 + learned
    for plain, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain, rtol=1e-5, atol=1e-7)
        assert plain.abs().max() > 0
