# SPDX-License-Identifier: Apache-2.0
"""Positions that are data: masks, repeats and mistakes where PyTorch's samples do not reach."""

import pytest
import torch
import torch.nn.functional as F
from support import check

pytestmark = pytest.mark.usefixtures("no_fallback")


def x(*dims):
    return torch.arange(torch.Size(dims).numel(), dtype=torch.float32).reshape(dims)


def index(*values):
    return torch.tensor(values)


MASK = x(3, 4) > 5
PUTS = {
    "mask_number": ((MASK,), torch.tensor(7.0)),
    "mask_values": ((MASK,), -x(6)),
    "mask_rows": ((MASK[:, 0],), -x(1, 4)),
    "mask_columns": ((slice(None), MASK[1]), -x(3, 2)),
    "mask_and_index": ((MASK[:, 3], index(0, 2)), torch.tensor(9.0)),
    "two_masks": ((MASK[:, 3], MASK[1]), torch.tensor(9.0)),
    "no_true": ((torch.zeros(3, 4, dtype=torch.bool),), torch.tensor(7.0)),
    "negative": ((index(-1, 0),), -x(2, 4)),
    "apart": ((index(0, 1),), -x(4)),
    "repeated": ((index(1, 1, 1),), -x(3, 4)),
}


@pytest.mark.parametrize("name", PUTS)
def test_put(name):
    where, values = PUTS[name]

    def put(tensor, values, *where):
        tensor[where] = values
        return tensor

    check(put, x(3, 4), values, *where)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.bfloat16])
def test_accumulate_over_repeats(dtype):
    def add(tensor, where, values):
        return tensor.index_put((where,), values, accumulate=True)

    check(add, x(3, 2).to(dtype), index(1, 1, -1), torch.ones(3, 2).to(dtype))


MISTAKES = {
    "index": lambda t, i: t[i],
    "column": lambda t, i: t[:, i],
    "gather": lambda t, i: t.gather(0, i[None]),
    "index_select": lambda t, i: t.index_select(0, i),
    "take": lambda t, i: t.take(i * 9),
    "embedding": lambda t, i: F.embedding(i, t),
    "index_put": lambda t, i: t.index_put((i,), t[:2]),
    "scatter": lambda t, i: t.scatter(0, i[None], t),
    "scatter_add": lambda t, i: t.scatter_add(0, i[None], t),
    "index_copy": lambda t, i: t.index_copy(0, i, t[:2]),
    "index_fill": lambda t, i: t.index_fill(0, i, 1.0),
    "nll_loss": lambda t, i: F.nll_loss(t[:2], i),
}


def first_words(error):
    return str(error).splitlines()[0].split(" (op ")[0]


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("bad", [5, -7])
def test_out_of_range(name, bad):
    expected, actual = None, None
    try:
        MISTAKES[name](x(3, 4), index(0, bad))
    except (IndexError, RuntimeError) as error:
        expected = error
    try:
        MISTAKES[name](x(3, 4).to("tpu"), index(0, bad).to("tpu"))
        torch.tpu.synchronize()
    except (IndexError, RuntimeError) as error:
        actual = error
    assert type(actual) is type(expected)
    assert first_words(actual) == first_words(expected)


def test_mask_values_must_fit():
    tensor, mask, values = x(3, 4).to("tpu"), MASK.to("tpu"), x(3).to("tpu")
    text = r"value tensor of shape \[3\] cannot be broadcast to indexing result of shape \[6\]"
    with pytest.raises(RuntimeError, match=text):
        tensor.index_put_((mask,), values).cpu()


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("start", [-4, 0, 1])
def test_gradient_of_a_slice(start, step):
    def gradient(t):
        leaf = t.requires_grad_()
        leaf[:, start::step].pow(2).sum().backward()
        return leaf.grad

    check(gradient, x(2, 7))


def test_positions_compile_once():
    def gradient(i):
        leaf = x(20, 3).to("tpu").requires_grad_()
        leaf[i].sum().backward()
        return leaf.grad

    gradient(0)
    gradient(1)
    before = torch.tpu.cache_stats()["compiles"]
    for i in range(2, 8):
        assert gradient(i).sum(1).nonzero().tolist() == [[i]]
    assert torch.tpu.cache_stats()["compiles"] - before <= 8  # the views of these tests


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 2])
def test_embedding_bag(mode, padding_idx):
    def bag(weight, ids, offsets):
        leaf = weight.requires_grad_()
        y = F.embedding_bag(ids, leaf, offsets, mode=mode, padding_idx=padding_idx)
        y.pow(2).sum().backward()
        return y.detach(), leaf.grad

    check(bag, x(5, 3), index(1, 2, 4, 0, 4), index(0, 2, 2, 4))
