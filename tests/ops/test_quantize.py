# SPDX-License-Identifier: Apache-2.0
"""Fake quantization with its gradients, and products of narrow matrices."""

import pytest
import torch
import torch.nn.functional as F
from support import check, check_error, same

pytestmark = pytest.mark.usefixtures("no_fallback")

NAN, INF = float("nan"), float("inf")
X = torch.tensor([[-3.0, 0.04, 0.051, 0.15], [2.0, NAN, INF, -INF], [0.31, -0.27, 1e10, -0.0]])
WEIGHT = torch.arange(1.0, 13.0).view(3, 4)
SCALES = torch.tensor([0.1, 0.2, 0.31])
GRID = (-8, 7)


def whole(*values):
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_per_tensor(dtype):
    ops = torch.ops.aten
    x = X.to(dtype)
    check(lambda x: ops.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, *GRID), x)
    check(lambda x: ops.fake_quantize_per_tensor_affine_cachemask(x, 0.31, 0, 0, 255), x)
    by_tensors = ops._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    for enabled in (0, 1):
        check(
            lambda *args: by_tensors(*args, *GRID), x, SCALES[:1], whole(3), torch.tensor([enabled])
        )


@pytest.mark.parametrize("zero_point", [whole(3, -1, 0), torch.tensor([3.0, -1.4, 0.0])])
def test_per_channel(zero_point):
    quantize = torch.ops.aten.fake_quantize_per_channel_affine_cachemask
    x = X.masked_fill(X == INF, 9.0)  # the CPU's integers have no infinity
    check(lambda x, s, z: quantize(x, s, z, 0, *GRID), x, SCALES, zero_point)
    x = x.clamp(max=99.0).half()
    check(lambda x, s, z: quantize(x.t(), s, z, 1, *GRID), x, SCALES, zero_point)


def test_gradient():
    def run(x, scale, zero_point):
        x.requires_grad_()
        one = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, *GRID)
        two = torch.fake_quantize_per_channel_affine(x, scale, zero_point, 0, *GRID)
        return torch.autograd.grad((one * 2 + two).sum(), x)

    check(run, X, SCALES, whole(3, -1, 0))


@pytest.mark.parametrize("zero_point", [2.6, 20.0, -0.4])
def test_learnable(zero_point):
    ops = torch.ops.aten
    x = X.nan_to_num(0.7, 9.0, -9.0)

    def per_tensor(w, x, s, z):
        out = ops._fake_quantize_learnable_per_tensor_affine(x, s, z, *GRID, 0.5)
        back = ops._fake_quantize_learnable_per_tensor_affine_backward(w, x, s, z, *GRID, 0.5)
        return out, back

    def per_channel(w, x, s, z):
        out = ops._fake_quantize_learnable_per_channel_affine(x, s, z, 0, *GRID, 0.5)
        back = ops._fake_quantize_learnable_per_channel_affine_backward(w, x, s, z, 0, *GRID, 0.5)
        return out, back

    zero_points = torch.tensor([zero_point, 1.2, -7.0])
    tolerances = {"rtol": 1e-5, "atol": 1e-5}
    check(per_tensor, WEIGHT, x, SCALES[:1], zero_points[:1], **tolerances)
    check(per_channel, WEIGHT, x, SCALES, zero_points, **tolerances)


def test_fake_quantize_refuses():
    one = torch.fake_quantize_per_tensor_affine
    channels = torch.fake_quantize_per_channel_affine
    check_error(lambda x: one(x, 0.1, 9, *GRID), X)
    check_error(lambda x: one(x, 0.1, 0, 8, 7), X)
    check_error(lambda x: one(x.long(), 0.1, 0, *GRID), X)
    check_error(lambda x, s, z: channels(x, s, z, 0, *GRID), X, SCALES, torch.tensor([3, -1, 0]))
    check_error(lambda x, s, z: channels(x, s, z, 0, *GRID), X, SCALES.double(), whole(3, 1, 0))
    check_error(lambda x, s, z: channels(x, s, z, 0, *GRID), X, SCALES[:2], whole(3, 1))
    check_error(lambda x, s, z: channels(x, s, z, 0, *GRID), X, SCALES, whole(3, 1))
    check_error(lambda x, s, z: channels(x, s, z, 2, *GRID), X, SCALES, whole(3, 1, 0))
    check_error(lambda x, s, z: channels(x, s, z, 0, 8, 7), X, SCALES, whole(3, 1, 0))


GENERATOR = torch.Generator().manual_seed(0)
BYTES = torch.randint(-128, 128, (16, 32), dtype=torch.int8, generator=GENERATOR)
A = torch.randn(8, 32, generator=GENERATOR)
EIGHTS = A.to(torch.float8_e4m3fn)
OTHER = torch.randn(32, 16, generator=GENERATOR).to(torch.float8_e4m3fn)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_int8_weight(dtype):
    product = torch.ops.aten._weight_int8pack_mm
    scales = torch.rand(16, generator=torch.Generator().manual_seed(1)).to(dtype)
    check(product, A.to(dtype), BYTES, scales, rtol=2e-2, atol=1.0 if dtype.itemsize < 4 else 1e-3)
    check_error(product, A.to(dtype), BYTES.float(), scales)
    check_error(product, A.to(dtype), BYTES[:, 1:].contiguous(), scales)
    check_error(product, A.to(dtype), BYTES, scales[1:])
    check_error(product, A.to(dtype), BYTES, scales.half())
    check_error(product, A.int(), BYTES, scales)


def test_products_of_bytes():
    check(torch._int_mm, BYTES, BYTES.t().contiguous())


@pytest.mark.parametrize("out", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["TensorWise", "RowWise"])
def test_products_of_float8(out, kind):
    if kind == "RowWise":
        scales = (torch.rand(8, 1, generator=GENERATOR), torch.rand(1, 16, generator=GENERATOR))
    else:
        scales = (torch.tensor([0.5]), torch.tensor([0.25]))
    recipe = getattr(F.ScalingType, kind)
    bias = torch.ones(16, dtype=out)

    def products(a, b, s, t, bias):
        yield torch._scaled_mm(a, b, s, t, out_dtype=out)
        yield torch._scaled_mm(a.to(torch.float8_e5m2), b, s, t, bias=bias, out_dtype=out)
        yield F.scaled_mm(a, b, s, recipe, t, recipe, output_dtype=out)

    arguments = (EIGHTS, OTHER, *scales, bias)
    expected = list(products(*arguments))
    actual = list(products(*(t.to("tpu") for t in arguments)))
    same(actual, expected, rtol=1e-2, atol=1e-2)
    default = torch._scaled_mm(EIGHTS.to("tpu"), OTHER.to("tpu"), *(s.to("tpu") for s in scales))
    assert default.dtype == torch.float8_e4m3fn


def test_products_of_float8_refuse():
    one = torch.tensor(1.0)
    check_error(torch._scaled_mm, A, OTHER, one, one)
    check_error(torch._scaled_mm, A, A.t(), one, one)
    check_error(torch._scaled_mm, EIGHTS, OTHER.float(), one, one)
    check_error(torch._scaled_mm, EIGHTS, OTHER[1:], one, one)
    check_error(torch._scaled_mm, EIGHTS, OTHER, torch.ones(8, 2), torch.ones(2, 1))
    check_error(torch._scaled_mm, EIGHTS, OTHER, torch.ones(8, 1), one)
    check_error(lambda a, b, s, t: torch._scaled_mm(a, b, s, s, bias=t), EIGHTS, OTHER, one, A[0])
