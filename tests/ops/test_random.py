# SPDX-License-Identifier: Apache-2.0
"""Samplers draw from the distribution they name, from the state they are given."""

import math

import pytest
import torch
from support import check_error

pytestmark = pytest.mark.usefixtures("no_fallback")

COUNT = 50_000


def empty(dtype=torch.float32):
    return torch.empty(COUNT, device="tpu", dtype=dtype)


def full(value, dtype=torch.float32):
    return torch.full((COUNT,), value, device="tpu", dtype=dtype)


CONTINUOUS = {
    "uniform": (lambda t: empty(t).uniform_(-1, 3), lambda x: (x + 1) / 4),
    "normal": (lambda t: empty(t).normal_(2, 3), lambda x: torch.special.ndtr((x - 2) / 3)),
    "exponential": (lambda t: empty(t).exponential_(2), lambda x: 1 - torch.exp(-2 * x)),
    "cauchy": (lambda t: empty(t).cauchy_(1, 2), lambda x: torch.atan((x - 1) / 2) / math.pi + 0.5),
    "log_normal": (
        lambda t: empty(t).log_normal_(0.5, 0.7),
        lambda x: torch.special.ndtr((x.log() - 0.5) / 0.7),
    ),
    "gamma_below_one": (
        lambda t: torch._standard_gamma(full(0.3, t)),
        lambda x: torch.special.gammainc(torch.full_like(x, 0.3), x),
    ),
    "gamma": (
        lambda t: torch._standard_gamma(full(4.5, t)),
        lambda x: torch.special.gammainc(torch.full_like(x, 4.5), x),
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CONTINUOUS)
def test_distribution(name, dtype):
    draw, distribution = CONTINUOUS[name]
    torch.manual_seed(0)
    x = draw(dtype).cpu().double().sort().values
    steps = torch.arange(1, COUNT + 1) / COUNT
    # Kolmogorov and Smirnov: exceeded once in a thousand draws.
    assert (distribution(x) - steps).abs().max() < 1.95 / math.sqrt(COUNT)


DISCRETE = {
    "bernoulli": (lambda: empty().bernoulli_(0.3), 0.3, 0.21),
    "bernoulli_tensor": (lambda: torch.bernoulli(full(0.3)), 0.3, 0.21),
    "geometric": (lambda: empty().geometric_(0.3), 1 / 0.3, 0.7 / 0.09),
    "poisson_small": (lambda: torch.poisson(full(2.5)), 2.5, 2.5),
    "poisson": (lambda: torch.poisson(full(250.0)), 250.0, 250.0),
    "binomial_small": (lambda: torch.binomial(full(20.0), full(0.9)), 18.0, 1.8),
    "binomial": (lambda: torch.binomial(full(200.0), full(0.3)), 60.0, 42.0),
    "random_u8": (lambda: empty(torch.uint8).random_(), 127.5, (256**2 - 1) / 12),
    "randint": (lambda: torch.randint(-3, 5, (COUNT,), device="tpu"), 0.5, 63 / 12),
    "dropout": (lambda: torch.dropout(full(1.0), 0.25, True), 1.0, 1 / 3),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_moments(name):
    draw, mean, variance = DISCRETE[name]
    torch.manual_seed(0)
    x = draw().cpu().double()
    assert abs(x.mean() - mean) < 4 * math.sqrt(variance / COUNT)
    assert abs(x.var() / variance - 1) < 0.05


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_rand_never_reaches_one(dtype):
    x = torch.rand(400_000, device="tpu", dtype=dtype).cpu()
    assert x.min() >= 0
    assert x.max() < 1


@pytest.mark.parametrize("low, high", [(0, 1), (-(2**62), 2**62), (2**40, 2**40 + 7)])
def test_integers_stay_in_range_and_reach_its_ends(low, high):
    x = torch.randint(low, high, (4096,), device="tpu").cpu()
    assert low <= x.min() and x.max() < high
    if high - low < 100:
        assert x.unique().numel() == high - low


def test_all_of_64_bits():
    x = torch.empty(4096, dtype=torch.int64, device="tpu").random_(-(2**63), None).cpu()
    assert x.min() < -(2**62) and x.max() > 2**62


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_permutation(n):
    x = torch.randperm(n, device="tpu").cpu()
    assert x.sort().values.tolist() == list(range(n))
    assert n < 1000 or x.tolist() != list(range(n))


@pytest.mark.parametrize("samples, replacement", [(1, False), (3, False), (3, True)])
def test_multinomial(samples, replacement):
    weights = torch.tensor([1.0, 2.0, 0.0, 5.0])
    picked = torch.multinomial(weights.expand(COUNT, 4).to("tpu"), samples, replacement).cpu()
    share = torch.bincount(picked[:, 0], minlength=4) / COUNT
    assert torch.allclose(share, weights / 8, atol=0.02)
    if not replacement:
        assert all(row.unique().numel() == samples for row in picked[:100])


def test_a_draw_depends_on_the_state_alone():
    torch.manual_seed(7)
    first = [torch.rand(5, device="tpu"), torch.randn(3, device="tpu"), torch.rand(5, device="tpu")]
    torch.manual_seed(7)
    again = [torch.rand(5, device="tpu"), torch.randn(3, device="tpu"), torch.rand(5, device="tpu")]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], first[2])


def test_parameters_compile_nothing():
    torch.empty(9, device="tpu").uniform_(0, 1)
    torch.randint(0, 5, (9,), device="tpu")
    before = torch.tpu.cache_stats()["compiles"]
    torch.empty(9, device="tpu").uniform_(-3, 4)
    torch.randint(2, 50, (9,), device="tpu")
    assert torch.tpu.cache_stats()["compiles"] == before


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x.uniform_(2, 1),
        lambda x: x.normal_(0, -1),
        lambda x: x.bernoulli_(2),
        lambda x: x.exponential_(-1),
        lambda x: x.random_(5, 3),
        lambda x: torch.multinomial(x, 9),
    ],
)
def test_errors(draw):
    check_error(draw, torch.zeros(3))


def test_errors_of_data():
    with pytest.raises(RuntimeError, match="probability tensor contains either"):
        torch.multinomial(torch.tensor([-1.0, 2.0], device="tpu"), 1).cpu()
