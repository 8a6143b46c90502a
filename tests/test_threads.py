# SPDX-License-Identifier: Apache-2.0
"""Many threads on one device: right values, no deadlock, errors where they belong."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from support import same


def in_threads(function, count=8):
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, range(count)))


def test_independent_work():
    def work(seed):
        x = torch.full((16,), float(seed), device="tpu")
        for step in range(100):
            x = x * 1.01 + step
            x[step % 16].sub_(1)
        return x.cpu()

    expected = [work_on_cpu(seed) for seed in range(8)]
    same(in_threads(work), expected, rtol=1e-5, atol=1e-3)


def work_on_cpu(seed):
    x = torch.full((16,), float(seed))
    for step in range(100):
        x = x * 1.01 + step
        x[step % 16].sub_(1)
    return x


@pytest.mark.full
def test_two_thousand_operations_each():
    def work(seed):
        x = torch.full((8,), float(seed), device="tpu")
        for _ in range(1000):
            x.add_(1).mul_(1.0)
        return x[0].item()

    assert in_threads(work) == [1000.0 + seed for seed in range(8)]


def test_same_new_program_at_once():
    def work(_):
        return torch.arange(37.0, device="tpu").tan().sum().item()

    results = in_threads(work)
    assert len(set(results)) == 1


def test_backward_in_threads():
    def work(seed):
        x = torch.full((5,), float(seed + 1), device="tpu", requires_grad=True)
        (x * x).sum().backward()
        return x.grad.cpu()

    same(in_threads(work), [torch.full((5,), 2.0 * (seed + 1)) for seed in range(8)])


def test_shared_tensor_is_read_by_all():
    x = torch.arange(1000.0, device="tpu")
    expected = (torch.arange(1000.0) * 2).sum()
    for result in in_threads(lambda _: (x * 2).sum().cpu()):
        same(result, expected)


def test_error_reaches_the_thread_that_made_it():
    def work(seed):
        x = torch.ones(2, 3, device="tpu")
        if seed % 2:
            try:
                x @ x
            except RuntimeError:
                return "error"
        return (x @ x.t()).sum().item()

    assert in_threads(work) == [12.0, "error"] * 4


def test_threads_have_their_own_current_device():
    def work(index):
        torch.tpu.set_device(index % 2)
        return torch.ones(1, device="tpu").device.index

    assert in_threads(work) == [0, 1] * 4
    assert torch.tpu.current_device() == 0
