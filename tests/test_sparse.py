# SPDX-License-Identifier: Apache-2.0
"""Sparse COO tensors: what the CPU makes of them, computed on the device."""

import copy
import io
import pickle

import pytest
import torch
import torch_tpu._C
from support import check_error, same
from torch import nn

pytestmark = [
    pytest.mark.usefixtures("no_fallback"),
    pytest.mark.filterwarnings("ignore:Sparse"),
]


def duplicates():
    indices = torch.tensor([[0, 1, 1, 0], [2, 0, 0, 1]])
    return torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0, 3.0, 4.0]), (2, 3))


def coalesced():
    return torch.sparse_coo_tensor(torch.tensor([[0, 1], [2, 2]]), torch.ones(2), (2, 3)).coalesce()


def rows():
    values = torch.arange(1.0, 7.0).view(3, 2)
    return torch.sparse_coo_tensor(torch.tensor([[3, 0, 3]]), values, (5, 2))


def empty():
    return torch.sparse_coo_tensor((2, 3))


def no_sparse_dims():
    return torch.sparse_coo_tensor(torch.zeros(0, 3, dtype=torch.long), torch.arange(3.0), ())


KINDS = [duplicates, coalesced, rows, empty, no_sparse_dims]
MATRICES = [duplicates, coalesced, empty]


def described(value):
    """A sparse tensor as its type, the split of its dimensions, and the sum of its entries."""
    if isinstance(value, list):
        return [described(v) for v in value]
    if value.layout == torch.strided:
        return value
    return [value.dtype, value.sparse_dim(), value.dense_dim(), value.to_dense()]


def check(function, *args, **tolerances):
    on_device = [a.to("tpu") if isinstance(a, torch.Tensor) else a for a in args]
    actual = function(*on_device)
    assert all(t.device.type == "tpu" for t in (actual if isinstance(actual, list) else [actual]))
    same(described(actual), described(function(*args)), **tolerances)


@pytest.mark.parametrize("make", KINDS)
def test_moves_to_the_device_and_back(make):
    there = make().to("tpu")
    back = there.cpu()
    assert there.device.type == "tpu" and there._values().device.type == "tpu"
    assert back.is_coalesced() == make().is_coalesced()
    same(back._indices(), make()._indices())
    same(back._values(), make()._values())


@pytest.mark.parametrize(
    "make",
    [
        lambda d: torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], device=d),
        lambda d: torch.sparse_coo_tensor(torch.tensor([[4, 1]]).to(d), torch.ones(2, 3).to(d)),
        lambda d: torch.sparse_coo_tensor([[0, 1]], [1, 2], (5,), dtype=torch.float64, device=d),
        lambda d: torch.sparse_coo_tensor((2, 3), device=d),
        lambda d: torch.empty(2, 3, layout=torch.sparse_coo, device=d),
        lambda d: torch.zeros_like(duplicates().to(d)),
        lambda d: torch.eye(3, device=d).to_sparse(),
        lambda d: torch.eye(3, device=d).to_sparse(1),
        lambda d: torch.zeros(3, 2, device=d).to_sparse(),
        lambda d: torch.ones((), device=d).to_sparse(),
    ],
)
def test_construction(make):
    actual = make("tpu")
    assert actual.device.type == "tpu"
    same(described(actual), described(make("cpu")))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("make", KINDS)
def test_coalesce_sorts_and_sums_duplicates(make, dtype):
    expected, actual = make().to(dtype).coalesce(), make().to(dtype).to("tpu").coalesce()
    assert actual.is_coalesced() and actual._nnz() == expected._nnz()
    same(actual.indices(), expected.indices())
    same(actual.values(), expected.values())


def test_nnz_need_not_fill_its_bucket():
    indices = torch.randint(0, 50, (2, 37))
    s = torch.sparse_coo_tensor(indices, torch.randn(37, 2), (50, 50, 2))
    check(lambda s: [s.coalesce().indices(), s.coalesce().values()], s)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda s: s.to_dense(),
        lambda s: [s * 2, s / 2, -s, s.clone(), s.double(), s + s, s - s, s * s],
        lambda s: [s.clone().zero_(), s.clone().mul_(0.5), s.clone().add_(s, alpha=3)],
        lambda s: torch.ones(s.shape, device=s.device) + s,
        lambda s: torch.ones(s.shape, device=s.device).add_(s, alpha=-0.5),
        lambda s: torch.ones(s.shape, dtype=torch.long, device=s.device) + s,
        lambda s: [s.coalesce().sqrt(), s.coalesce().pow(2), s.coalesce().norm(), s.isnan().any()],
        lambda s: [s.sum(), copy.deepcopy(s), pickle.loads(pickle.dumps(s))],
    ],
)
def test_arithmetic(make, function):
    check(function, make())


@pytest.mark.parametrize("make", [duplicates, coalesced, rows, empty])
@pytest.mark.parametrize(
    "function",
    [
        lambda s: torch.ones(s.shape[::-1], device=s.device).t().add_(s),
        lambda s: torch.full(s.shape, 3.0, device=s.device) * s,
        lambda s: [s.unsqueeze(0), s[0], torch.cat([s, s]), s.narrow_copy(0, 0, 1)],
        lambda s: [torch.sparse.sum(s, dim) for dim in (0, 1, [0, 1])],
        lambda s: s.index_select(0, torch.tensor([1, 0, 1], device=s.device)),
        lambda s: s.new(s._indices(), s._values(), s.shape),
        lambda s: s.new().resize_as_(s),
    ],
)
def test_shapes_and_sums(make, function):
    check(function, make())


@pytest.mark.parametrize("mask", [duplicates, coalesced, empty])
def test_sparse_mask(mask):
    check(lambda x, m: x.sparse_mask(m), torch.arange(6.0).view(2, 3), mask().coalesce())
    check(lambda x, m: x.sparse_mask(m), duplicates(), mask().coalesce())


@pytest.mark.parametrize("make", MATRICES)
def test_products(make):
    dense = torch.randn(3, 2)
    check(lambda s, d: [s @ d, torch.sparse.mm(s, d), s @ d[:, 0]], make(), dense)
    check(lambda s, d: torch.addmm(d[:2], s, d, beta=2, alpha=3), make(), dense)
    check(lambda s, d: d[:2].clone().addmm_(s, d), make(), dense)
    check(lambda s, d: torch.bmm(torch.stack([s, s * 2]), torch.stack([d, -d])), make(), dense)
    check(lambda s: [s.t(), torch.sparse.mm(s, s.t())], make())


@pytest.mark.parametrize("make", MATRICES)
def test_gradients(make):
    dense = torch.randn(3, 2)

    def product(s, d):
        s, d = s.clone().coalesce().requires_grad_(), d.clone().requires_grad_()
        torch.sparse.mm(s, d).square().sum().backward()
        return [s.grad, d.grad]

    def total(s, dim):
        s = s.clone().coalesce().requires_grad_()
        kept = torch.sparse.sum(s, dim)
        (kept.to_dense() if kept.is_sparse else kept).square().sum().backward()
        return s.grad

    check(product, make(), dense, rtol=1e-5, atol=1e-6)
    for dim in (0, 1, (0, 1)):
        check(total, make(), dim)


def test_sums_of_uncoalesced_tensors_stay_bounded():
    s = total = duplicates().to("tpu")
    for _ in range(10):
        total = total + s
    assert total._nnz() <= total.numel()
    same(total.to_dense().cpu(), duplicates().to_dense() * 11)


def test_printing_and_saving():
    s = duplicates().to("tpu")
    assert repr(s).replace("device='tpu:0', ", "") == repr(duplicates())
    file = io.BytesIO()
    torch.save(s, file)
    file.seek(0)
    same(torch.load(file).to_dense(), duplicates().to_dense())


@pytest.mark.skipif(torch.tpu.device_count() < 2, reason="needs two devices")
def test_stays_on_its_device():
    s = duplicates().to("tpu:1")
    for t in (s, s * 2, s + s, s.coalesce(), torch.zeros_like(s), s.t(), s.to_dense()):
        assert t.device.index == 1
        if t.is_sparse:
            assert t._indices().device.index == t._values().device.index == 1


LAYERS = {
    "embedding": lambda: nn.Embedding(7, 3, sparse=True),
    "padding": lambda: nn.Embedding(7, 3, sparse=True, padding_idx=2),
    "bag of sums": lambda: nn.EmbeddingBag(7, 3, sparse=True, mode="sum"),
    "bag of means": lambda: nn.EmbeddingBag(7, 3, sparse=True, mode="mean", padding_idx=1),
}
OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "SparseAdam": lambda p: torch.optim.SparseAdam(p, 0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("layer", LAYERS)
def test_training_with_sparse_gradients(layer, optimizer):
    def weights(device):
        torch.manual_seed(0)
        model = LAYERS[layer]().to(device)
        steps = OPTIMIZERS[optimizer](model.parameters())
        seen = []
        for step in range(3):
            tokens = (torch.arange(8).view(2, 4) * (step + 1) % 7).to(device)
            for _ in range(step + 1):  # gradients add up
                model(tokens).square().sum().backward()
            assert model.weight.grad.is_sparse
            seen.append(model.weight.grad.to_dense())
            steps.step()
            steps.zero_grad(set_to_none=step == 0)
            seen.append(model.weight.detach().clone())
        return seen

    same(weights("tpu"), weights("cpu"), rtol=1e-4, atol=1e-4)


def test_bags_with_offsets_and_weights():
    def gradients(tokens, offsets, weights):
        torch.manual_seed(0)
        bag = nn.EmbeddingBag(7, 3, sparse=True, mode="sum", include_last_offset=True)
        bag.to(tokens.device)
        weights = weights.clone().requires_grad_()
        bag(tokens, offsets, weights).square().sum().backward()
        return [bag.weight.grad, weights.grad]

    tokens, offsets = torch.tensor([1, 2, 4, 5, 4, 3, 2]), torch.tensor([0, 3, 3, 7])
    check(gradients, tokens, offsets, torch.rand(7), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, d: s + d,
        lambda s, d: d + s.t(),
        lambda s, d: s + s.t(),
        lambda s, d: s.add_(s.double().long().bool()[0]),
        lambda s, d: torch.sparse.mm(s, d),
        lambda s, d: torch.sparse.mm(s, s),
        lambda s, d: s.indices(),
        lambda s, d: d.to_sparse(3),
        lambda s, d: torch.sparse_coo_tensor(s._indices(), s._values(), (2,)),
        lambda s, d: torch.sparse_coo_tensor(
            s._indices(), s._values(), (1, 3), check_invariants=True
        ),
        lambda s, d: torch.sparse_coo_tensor(-s._indices(), s._values()),
    ],
)
def test_mistakes_are_those_of_the_cpu(function):
    check_error(lambda d: function(duplicates().to(d.device), d), torch.ones(2, 3))


def test_tensors_of_two_devices():
    with pytest.raises(RuntimeError, match="at least two devices"):
        torch.ones(2, 3, device="tpu") + duplicates()


@pytest.mark.parametrize(
    ("function", "operator", "advice"),
    [
        (lambda: duplicates().to("tpu").exp(), "aten::exp", ".to_dense()"),
        (lambda: torch.sparse.softmax(duplicates().to("tpu"), 1), "_sparse_softmax", ".to_dense()"),
        (lambda: torch.eye(2).to_sparse_csr().to("tpu") @ torch.eye(2, device="tpu"), "mm", "coo"),
        (
            lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device="tpu") + 1,
            "aten::add",
            "jagged",
        ),
        (
            lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8).to("tpu"),
            "empty_quantized",
            "dequantize",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_supported_says_what_to_do(function, operator, advice):
    with pytest.raises(NotImplementedError, match="not supported for .* on tpu") as error:
        function()
    assert operator in str(error.value) and advice in str(error.value)


def test_compressed_layouts_move_and_convert():
    torch_tpu._C.set_fallback_policy("allow")  # expanding compressed indices runs on the host
    dense = torch.eye(4)
    for compressed in (dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr((2, 2))):
        there = compressed.to("tpu")
        same(there.to_dense(), dense)
        same(there.cpu().to_dense(), dense)
