# SPDX-License-Identifier: Apache-2.0
"""How samples move with their parameters. The CPU's approximations are good to 2e-3 at worst."""

import pytest
import torch
from support import check, check_error

pytestmark = pytest.mark.usefixtures("no_fallback")

GENERATOR = torch.Generator().manual_seed(0)
SHAPES = 10 ** torch.linspace(-2, 3, 64, dtype=torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gamma(dtype):
    shape = SHAPES.repeat(4)
    x = torch._standard_gamma(shape, generator=GENERATOR).clamp(min=1e-30)
    check(torch._standard_gamma_grad, shape.to(dtype), x.to(dtype), rtol=1e-3, atol=1e-6)
    check(torch._standard_gamma_grad, torch.tensor([0.5, 2.0]), torch.tensor([0.0, 0.0]))


def test_gamma_where_it_is_known():
    # For shape 1, F = 1 - e^-x, and the integral has a closed form by the exponential integral.
    x = torch.tensor([1e-6, 0.5, 1.0, 3.0, 20.0], dtype=torch.float64)
    step = 1e-5
    shapes = (torch.full_like(x, 1 - step), torch.full_like(x, 1 + step))
    low, high = (torch.special.gammainc(a, x) for a in shapes)
    slope = -(high - low) / (2 * step) / torch.exp(-x)
    actual = torch._standard_gamma_grad(torch.ones_like(x).to("tpu"), x.to("tpu")).cpu()
    torch.testing.assert_close(actual[:4], slope[:4], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dirichlet(dtype):
    a, b = SHAPES.repeat(4), SHAPES.roll(17).repeat_interleave(4)
    x = torch.distributions.Beta(a, b).sample().clamp(1e-6, 1 - 1e-6)
    arguments = (x.to(dtype), a.to(dtype), (a + b).to(dtype))
    check(torch._dirichlet_grad, *arguments, rtol=4e-3, atol=1e-5)


def test_reparameterized_samples_reach_the_parameters():
    a = torch.tensor([0.3, 1.0, 7.0], device="tpu", requires_grad=True)
    for distribution in (
        torch.distributions.Gamma(a, a + 1),
        torch.distributions.Beta(a, a + 1),
        torch.distributions.Dirichlet(a),
    ):
        gradient = torch.autograd.grad(distribution.rsample((5,)).square().sum(), a)[0]
        assert gradient.isfinite().all()


def test_refuses():
    check_error(torch._standard_gamma_grad, torch.ones(2).half(), torch.ones(2).half())
    check_error(torch._dirichlet_grad, *[torch.ones(2, dtype=torch.int64)] * 3)
