# SPDX-License-Identifier: Apache-2.0
"""Scaled dot product attention beyond PyTorch's samples: masks, shared heads, dropout."""

import pytest
import torch
from support import check, to_device
from torch.nn.functional import scaled_dot_product_attention as attention

pytestmark = pytest.mark.usefixtures("no_fallback")


def with_gradients(q, k, v, mask=None, **options):
    leaves = [t.requires_grad_() for t in (q, k, v)]
    y = attention(q, k, v, mask, **options)
    return y.detach(), torch.autograd.grad(y.square().sum(), leaves)


def masks():
    empty_row = torch.ones(6, 7, dtype=torch.bool)
    empty_row[2] = False
    return [
        None,
        torch.randn(6, 7),
        torch.randn(2, 1, 1, 7),
        torch.rand(2, 4, 6, 7) > 0.3,
        empty_row,
    ]


@pytest.mark.parametrize("mask", masks(), ids=["none", "float", "padding", "bool", "empty_row"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_masks(mask, scale):
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 5)
    check(
        lambda *a: with_gradients(*a, scale=scale),
        q,
        k,
        v,
        mask,
        strides=False,
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("rows,columns", [(5, 5), (4, 6), (6, 4)])
def test_causal_masks_are_aligned_at_the_top_left(rows, columns):
    q, k = torch.randn(2, 3, rows, 8), torch.randn(2, 3, columns, 8)
    check(
        lambda *a: with_gradients(*a, is_causal=True),
        q,
        k,
        k.clone(),
        strides=False,
        atol=1e-5,
        rtol=1e-5,
    )


@pytest.mark.parametrize("key_heads", [1, 2, 6])
def test_query_heads_share_key_heads(key_heads):
    q, k = torch.randn(2, 6, 5, 8), torch.randn(2, key_heads, 7, 8)
    check(
        lambda *a: with_gradients(*a, enable_gqa=True),
        q,
        k,
        k.clone(),
        strides=False,
        atol=1e-5,
        rtol=1e-5,
    )


def test_dropout_gradient_is_of_the_same_draw():
    q, k, v = (t.requires_grad_() for t in to_device([torch.randn(1, 2, 32, 4) for _ in range(3)]))
    y = attention(q, k, v, dropout_p=0.5)
    (dv,) = torch.autograd.grad(y.sum(), v)
    # The result is linear in the values.
    torch.testing.assert_close((dv * v).sum(), y.sum(), atol=1e-4, rtol=1e-4)
    assert not torch.equal(y, attention(q, k, v, dropout_p=0.5))
