# SPDX-License-Identifier: Apache-2.0
"""Random numbers: seeding, states, reproducibility and distributions."""

import pytest
import torch
from support import run_python, same

SAMPLERS = {
    "rand": lambda d, g: torch.rand(1000, device=d, generator=g),
    "randn": lambda d, g: torch.randn(1000, device=d, generator=g),
    "randint": lambda d, g: torch.randint(3, 17, (1000,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(1000, device=d, generator=g),
    "bernoulli": lambda d, g: torch.full((1000,), 0.3, device=d).bernoulli(generator=g),
    "bernoulli_": lambda d, g: torch.empty(1000, device=d).bernoulli_(0.3, generator=g),
    "normal_": lambda d, g: torch.empty(1000, device=d).normal_(2, 3, generator=g),
    "uniform_": lambda d, g: torch.empty(1000, device=d).uniform_(-1, 2, generator=g),
    "exponential_": lambda d, g: torch.empty(1000, device=d).exponential_(2, generator=g),
    "random_": lambda d, g: torch.empty(1000, device=d).random_(0, 9, generator=g),
    "multinomial": lambda d, g: torch.arange(1.0, 9, device=d).multinomial(
        1000, replacement=True, generator=g
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_seed_reproduces(name):
    draw = SAMPLERS[name]
    torch.manual_seed(7)
    first, second = draw("tpu", None), draw("tpu", None)
    torch.manual_seed(7)
    same(draw("tpu", None), first)
    same(draw("tpu", None), second)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("name", SAMPLERS)
def test_own_generator(name):
    draw = SAMPLERS[name]
    generator = torch.Generator(device="tpu").manual_seed(5)
    before = torch.tpu.get_rng_state()
    first = draw("tpu", generator)
    assert torch.equal(torch.tpu.get_rng_state(), before), "the default generator moved"
    same(draw("tpu", generator.manual_seed(5)), first)


@pytest.mark.parametrize("name", [n for n in SAMPLERS if n != "randperm"])
def test_distribution_is_the_cpus(name):
    actual = SAMPLERS[name]("tpu", None).cpu().double()
    expected = SAMPLERS[name]("cpu", None).double()
    spread = expected.std().item()
    assert abs(actual.mean() - expected.mean()) < 0.25 * spread
    assert abs(actual.std() - spread) < 0.25 * spread


def test_permutation():
    same(SAMPLERS["randperm"]("tpu", None).sort().values, torch.arange(1000))


def test_state_is_sixteen_bytes_of_seed_and_offset():
    torch.tpu.manual_seed(0x0102030405060708)
    state = torch.tpu.get_rng_state()
    assert state.dtype == torch.uint8 and state.device.type == "cpu" and state.shape == (16,)
    assert state.view(torch.int64).tolist() == [0x0102030405060708, 0]
    torch.rand(4, device="tpu")
    assert torch.tpu.get_rng_state().view(torch.int64)[1] > 0


def test_state_restores():
    torch.rand(3, device="tpu")
    state = torch.tpu.get_rng_state()
    first = torch.randn(5, device="tpu")
    torch.tpu.set_rng_state(state)
    same(torch.randn(5, device="tpu"), first)
    states = torch.tpu.get_rng_state_all()
    assert len(states) == 2
    torch.tpu.set_rng_state_all(states)


def test_clone_and_graphsafe_state():
    generator = torch.Generator(device="tpu").manual_seed(3)
    torch.rand(3, device="tpu", generator=generator)
    clone = generator.clone_state()
    same(
        torch.rand(3, device="tpu", generator=clone),
        torch.rand(3, device="tpu", generator=generator),
    )


def test_devices_have_their_own():
    generators = torch.tpu.default_generators
    assert len(generators) == 2 and generators[0] is torch.tpu.default_generators[0]
    torch.manual_seed(1)
    state = torch.tpu.get_rng_state("tpu:1")
    torch.rand(3, device="tpu:0")
    assert torch.equal(torch.tpu.get_rng_state("tpu:1"), state)


def test_seeds():
    torch.tpu.manual_seed_all(11)
    assert torch.tpu.initial_seed() == 11
    assert torch.tpu.default_generators[1].initial_seed() == 11
    assert torch.tpu.seed() == torch.tpu.initial_seed() != 11
    torch.tpu.seed_all()
    torch.manual_seed(-3)


def test_fork_rng():
    torch.manual_seed(2)
    with torch.random.fork_rng(devices=[0], device_type="tpu"):
        inside = torch.rand(3, device="tpu")
    same(torch.rand(3, device="tpu"), inside)


def test_seeding_before_first_use_counts():
    draw = """
        import torch
        torch.manual_seed(5)
        {}
        print(torch.rand(3, device="tpu").tolist())
    """
    start = 'torch.ones(1, device="tpu"); torch.manual_seed(5)'
    assert run_python(draw.format("")).stdout == run_python(draw.format(start)).stdout


def test_changing_seed_or_probability_compiles_nothing():
    def draw(seed, p):
        torch.manual_seed(seed)
        torch.nn.functional.dropout(torch.ones(10, device="tpu"), p)
        torch.empty(10, device="tpu").normal_(p, 1 + p)

    draw(1, 0.5)
    torch.tpu.synchronize()
    before = torch.tpu.cache_stats()["compiles"]
    for seed in range(5):
        draw(seed, 0.1 + 0.1 * seed)
    assert torch.tpu.cache_stats()["compiles"] == before


def test_dropout():
    x = torch.ones(10000, device="tpu", requires_grad=True)
    y = torch.nn.functional.dropout(x, 0.25)
    kept = (y != 0).float().mean().item()
    assert abs(kept - 0.75) < 0.03
    same(y[y != 0], torch.full((int((y != 0).sum()),), 1 / 0.75))
    y.sum().backward()
    same(x.grad, y.detach())
    same(torch.nn.functional.dropout(x, 0.25, training=False), torch.ones(10000))


def test_wrong_generator_device():
    with pytest.raises(RuntimeError, match="Expected a 'tpu' .*but found 'cpu'|device type"):
        torch.rand(3, device="tpu", generator=torch.Generator())
