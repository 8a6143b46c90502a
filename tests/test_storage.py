# SPDX-License-Identifier: Apache-2.0
"""Storages: aliasing, addresses, resizing, rebinding, copying. As on any other device."""

import copy
import itertools
import pickle

import pytest
import torch
from support import check, same


def test_views_share_the_storage():
    x = torch.zeros(2, 3, device="tpu")
    v = x.t()[1:]
    assert v.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert v._base is x and v._is_view()
    assert torch._C._is_alias_of(x, v)
    v.fill_(5)
    same(x, torch.tensor([[0.0, 5, 5], [0, 5, 5]]))


def test_address_is_stable_and_unique():
    x, y = torch.ones(100, device="tpu"), torch.ones(100, device="tpu")
    address = x.data_ptr()
    assert address > 0 and address != y.data_ptr()
    assert x[10:].data_ptr() == address + 40
    x.add_(1)
    x.copy_(y)
    assert x.data_ptr() == address
    assert torch.empty(0, device="tpu").data_ptr() == 0
    assert x.untyped_storage().data_ptr() == address


def test_address_ranges_do_not_meet():
    tensors = [torch.empty(n, device="tpu") for n in (1, 7, 1000, 3)]
    ends = sorted((t.data_ptr(), t.data_ptr() + t.nbytes) for t in tensors)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))


def test_storage_size():
    x = torch.ones(3, 5, dtype=torch.float16, device="tpu")
    assert x.untyped_storage().nbytes() == 30 and x.untyped_storage().size() == 30
    assert x[1:].untyped_storage().nbytes() == 30
    assert torch.UntypedStorage(16, device="tpu").nbytes() == 16


@pytest.mark.parametrize(
    "sizes", [[(6,), (2, 3)], [(2,), (6,)], [(0,), (3, 3)], [(2, 2), (0,), (4,)]], ids=str
)
def test_resize(sizes):
    def resize(x):
        for size in sizes:
            x.resize_(size)
            x.fill_(1)
        return x

    check(resize, torch.arange(6.0))


def test_resize_keeps_what_fits():
    check(lambda x: x.resize_(2, 2).clone(), torch.arange(6.0))
    grown = torch.arange(3.0).to("tpu").resize_(5)
    same(grown[:3], torch.arange(3.0))


def test_storage_freed_and_restored():
    """FSDP frees parameters by resizing their storage to nothing, and fills them again."""
    x = torch.ones(1024, device="tpu") + 1
    view, storage = x[3:], x.untyped_storage()
    before = torch.tpu.memory_allocated()
    storage.resize_(0)
    assert torch.tpu.memory_allocated() <= before - x.numel() * 4
    assert storage.data_ptr() == 0 and x.shape == (1024,)
    storage.resize_(4096)
    x.copy_(torch.arange(1024.0))
    same(view, torch.arange(1024.0)[3:])


def test_set():
    def run(x, y):
        x.set_(y)
        y.add_(1)
        return x.clone()

    check(run, torch.zeros(3), torch.arange(4.0))

    def run_storage(x, y):
        x.set_(y.untyped_storage(), 2, (2, 2), (1, 2))
        y.mul_(2)
        return x.clone()

    check(run_storage, torch.zeros(3), torch.arange(8.0))


def test_set_shares_and_is_set_to():
    x, y = torch.zeros(3, device="tpu"), torch.arange(4.0, device="tpu")
    x.set_(y)
    assert x.is_set_to(y) and x.data_ptr() == y.data_ptr()


def test_data_assignment():
    x = torch.zeros(3, device="tpu", requires_grad=True)
    x.data = torch.arange(5.0, device="tpu")
    assert x.shape == (5,) and x.requires_grad
    same(x * 2, torch.arange(5.0) * 2)
    p = torch.nn.Parameter(torch.arange(3.0))
    p.data = p.data.to("tpu")
    assert p.is_tpu
    p.data = p.data.cpu()
    same(p, torch.arange(3.0))


def test_detach_shares():
    x = torch.ones(3, device="tpu", requires_grad=True)
    x.detach().mul_(3)
    same(x, torch.full((3,), 3.0))


def test_deepcopy_keeps_aliases():
    x = torch.arange(6.0, device="tpu")
    a, b = copy.deepcopy((x, x[2:]))
    a.add_(1)
    same(b, torch.arange(6.0)[2:] + 1)
    same(x, torch.arange(6.0))
    assert copy.deepcopy(x).device == x.device


def test_pickle():
    for x in (torch.arange(6.0), torch.arange(6).view(2, 3).t(), torch.tensor(True)):
        moved = pickle.loads(pickle.dumps(x.to("tpu")))
        assert moved.is_tpu
        same(moved, x)


def test_dtype_views_reinterpret_bits():
    for source, target in (
        (torch.float32, torch.int32),
        (torch.int64, torch.int32),
        (torch.uint8, torch.float16),
        (torch.bfloat16, torch.uint8),
    ):
        x = torch.arange(8).to(source)
        check(lambda x, t=target: x.view(t), x)
    check(torch.view_as_real, torch.arange(4).to(torch.complex64))
    check(torch.view_as_complex, torch.arange(8.0).view(4, 2))


def test_write_through_a_dtype_view():
    def run(x):
        x.view(torch.int32)[0] = 0x3F800000
        return x

    check(run, torch.zeros(3))


def test_host_memory_is_never_shared():
    source = torch.arange(4.0)
    x = source.to("tpu", non_blocking=True)
    source.fill_(9)
    same(x, torch.arange(4.0))
    y = x.cpu()
    y.fill_(7)
    same(x, torch.arange(4.0))


def test_empty_holds_nothing_until_written():
    before = torch.tpu.memory_allocated()
    x = torch.empty(1 << 20, device="tpu")
    assert torch.tpu.memory_allocated() == before
    x.zero_()
    assert torch.tpu.memory_allocated() >= before + x.nbytes


def test_printing():
    assert repr(torch.arange(3, device="tpu")) == "tensor([0, 1, 2], device='tpu:0')"
    assert "grad_fn" in repr(torch.ones(1, device="tpu", requires_grad=True) * 2)


def test_numpy_says_what_to_do():
    x = torch.ones(3, device="tpu")
    with pytest.raises(TypeError, match="can't convert tpu:0 device type tensor to numpy"):
        x.numpy()
    assert x.numpy(force=True).tolist() == [1, 1, 1]
    assert x.tolist() == [1, 1, 1]
