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
        parts = (*lf.nn.soft_assign(x, c, 0.5), *lf.nn.soft_sums(x, c, 0.5, w))
        gradients = torch.autograd.grad(sum(part.square().mean() for part in parts), (x, c, w))
        found.append([part.detach().cpu() for part in (*parts, *gradients)])
    for here, there in zip(*found, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-9, atol=1e-9)


def test_the_operators_are_registered_for_the_device():
    x, c = torch.randn(9, 2, device="cuda"), torch.randn(3, 2, device="cuda")
    torch.library.opcheck(operators._assign, (x, c, 2.0))
    torch.library.opcheck(operators._sums, (x, c, x[:, 0].abs(), 2.0))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_compiled_step_is_the_step():
    x = torch.randn(5000, 16, device="cuda")
    layer = lf.nn.SoftAssign(8, 16, inverse_temperature=0.3).cuda().start_at(x, random_state=0)
    plain = layer(x)[1].mean()
    compiled = torch.compile(lambda x: layer(x)[1].mean(), fullgraph=True)(x)
    compiled.backward()
    assert compiled.item() == pytest.approx(plain.item(), rel=1e-6)
    assert layer.centers.grad.abs().max() > 0
