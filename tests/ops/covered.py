# SPDX-License-Identifier: Apache-2.0
"""The operators that must run on the device itself: a row each, named as in PyTorch's samples."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Tolerances are for float32. ``strides``: results have the CPU's strides."""

    name: str
    rtol: float = 1e-4
    atol: float = 1e-5
    gradient: bool = True
    strides: bool = True

    def __str__(self) -> str:
        return self.name


_PLAIN = """
H T __getitem__ __radd__ __rand__ __rdiv__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__
__rxor__ _batch_norm_with_update _chunk_cat _native_batch_norm_legit _segment_reduce.lengths
_segment_reduce.offsets _softmax_backward_data _unsafe_masked_index
_unsafe_masked_index_put_accumulate _upsample_bilinear2d_aa abs acos acosh add addbmm addcdiv
addcmul addmm addmm.decomposed addmv addr alias_copy all allclose amax amin aminmax angle any arange
argmax argmin argsort as_strided as_strided.partial_views as_strided_copy as_strided_scatter asin
asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d baddbmm bfloat16 bincount bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor block_diag bmm
bmm.triton_optimized bool broadcast_shapes broadcast_tensors broadcast_to bucketize byte
cartesian_prod cat cdist cdouble ceil cfloat char chunk clamp clamp_max clamp_min clone column_stack
combinations complex conj conj_physical constant_pad_nd contiguous copysign cos cosh count_nonzero
cross cummax cummin cumprod cumsum cumulative_trapezoid deg2rad diag diag_embed diagflat diagonal
diagonal_copy diagonal_scatter diff digamma dist div.floor_rounding div.no_rounding_mode
div.trunc_rounding dot double dsplit dstack einsum eq erf erfc erfinv exp exp2 expand expand_as
expand_copy expm1 eye fft.fft2 fft.fftn fft.fftshift fft.ifft2 fft.ifftn fft.ifftshift fft.irfft2
fft.irfftn fft.rfft2 fft.rfftn fill flatten flip fliplr flipud float float_power floor floor_divide
fmax fmin fmod frac frexp full full_like gather gcd ge gradient grid_sampler_2d grid_sampler_3d gt
half hash_tensor heaviside histc histogram histogramdd hsplit hstack hypot i0 igamma igammac
index_add index_copy index_put index_reduce.amax index_reduce.amin index_reduce.mean
index_reduce.prod index_select inner int isclose isfinite isin isinf isnan isneginf isposinf isreal
item kron kthvalue lcm ldexp le lerp lgamma linalg.cross linalg.diagonal linalg.matrix_norm
linalg.matrix_power linalg.multi_dot linalg.norm linalg.norm.subgradients_at_zero linalg.vander
linalg.vecdot linalg.vector_norm linspace linspace.tensor_overload log log10 log1p log2 log_softmax
log_softmax.with_dtype logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or
logical_xor logit logspace logspace.tensor_overload logsumexp long lt mH mT masked.amax masked.amin
masked.argmax masked.argmin masked.cumprod masked.cumsum masked.log_softmax masked.logaddexp
masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod masked.softmax
masked.softmin masked.std masked.sum masked.var masked_fill masked_scatter masked_select matmul
max.binary max.reduction_no_dim max.reduction_with_dim max_pool2d_with_indices_backward maximum mean
median meshgrid.list_of_tensors meshgrid.variadic_tensors min.binary min.reduction_no_dim
min.reduction_with_dim minimum mm mode movedim msort mul mv mvlgamma.mvlgamma_p_1
mvlgamma.mvlgamma_p_3 mvlgamma.mvlgamma_p_5 nan_to_num nanmean nanmedian nanquantile nansum narrow
narrow_copy native_batch_norm native_dropout_backward native_group_norm native_layer_norm ne neg
new_full new_ones new_zeros nextafter nn.functional.adaptive_avg_pool1d
nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d
nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d
nn.functional.adaptive_max_pool3d nn.functional.alpha_dropout nn.functional.avg_pool1d
nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.batch_norm nn.functional.bilinear
nn.functional.binary_cross_entropy nn.functional.binary_cross_entropy_with_logits nn.functional.celu
nn.functional.channel_shuffle nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d
nn.functional.cosine_embedding_loss nn.functional.cosine_similarity nn.functional.cross_entropy
nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.elu
nn.functional.embedding nn.functional.embedding_bag
nn.functional.feature_alpha_dropout.without_train nn.functional.fractional_max_pool2d
nn.functional.gaussian_nll_loss nn.functional.gelu nn.functional.glu nn.functional.grid_sample
nn.functional.group_norm nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish
nn.functional.hardtanh nn.functional.hinge_embedding_loss nn.functional.huber_loss
nn.functional.instance_norm nn.functional.interpolate.area nn.functional.interpolate.bicubic
nn.functional.interpolate.bilinear nn.functional.interpolate.linear
nn.functional.interpolate.nearest nn.functional.interpolate.nearest-exact
nn.functional.interpolate.trilinear nn.functional.kl_div nn.functional.l1_loss
nn.functional.layer_norm nn.functional.leaky_relu nn.functional.linear
nn.functional.linear_cross_entropy nn.functional.linear_cross_entropy.chunked
nn.functional.linear_cross_entropy.chunked_none nn.functional.local_response_norm
nn.functional.margin_ranking_loss nn.functional.max_pool1d nn.functional.max_pool2d
nn.functional.max_pool3d nn.functional.max_unpool1d nn.functional.max_unpool1d.grad
nn.functional.max_unpool2d nn.functional.max_unpool2d.grad nn.functional.max_unpool3d
nn.functional.max_unpool3d.grad nn.functional.mish nn.functional.mse_loss
nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss
nn.functional.multilabel_soft_margin_loss nn.functional.nll_loss nn.functional.normalize
nn.functional.one_hot nn.functional.pad.circular nn.functional.pad.constant
nn.functional.pad.reflect nn.functional.pad.replicate nn.functional.pad.replicate_negative
nn.functional.pairwise_distance nn.functional.pdist nn.functional.pixel_shuffle
nn.functional.pixel_unshuffle nn.functional.poisson_nll_loss nn.functional.prelu nn.functional.relu
nn.functional.relu6 nn.functional.rms_norm nn.functional.scaled_dot_product_attention
nn.functional.selu nn.functional.silu nn.functional.smooth_l1_loss nn.functional.soft_margin_loss
nn.functional.softmin nn.functional.softmin.with_dtype nn.functional.softplus
nn.functional.softshrink nn.functional.softsign nn.functional.tanhshrink nn.functional.threshold
nn.functional.triplet_margin_loss nn.functional.triplet_margin_with_distance_loss
nn.functional.unfold nn.functional.upsample_bilinear nn.functional.upsample_nearest nonzero_static
norm norm.fro norm.inf ones ones_like outer permute permute_copy polar polygamma.polygamma_n_0
polygamma.polygamma_n_1 polygamma.polygamma_n_2 polygamma.polygamma_n_3 polygamma.polygamma_n_4
positive pow prod put quantile rad2deg ravel real reciprocal remainder renorm repeat
repeat_interleave reshape reshape_as resize_ resize_as_ resolve_conj resolve_neg rot90 round
round.decimals_0 round.decimals_3 round.decimals_neg_3 rsqrt rsub scalar_tensor scatter scatter_add
scatter_reduce.amax scatter_reduce.amin scatter_reduce.mean scatter_reduce.prod scatter_reduce.sum
searchsorted select select_scatter sgn short sigmoid sign signal.windows.bartlett
signal.windows.blackman signal.windows.cosine signal.windows.exponential signal.windows.gaussian
signal.windows.general_cosine signal.windows.general_hamming signal.windows.hamming
signal.windows.hann signal.windows.kaiser signal.windows.nuttall signbit sin sinc sinh slice
slice_scatter softmax softmax.with_dtype sort special.airy_ai special.bessel_j0 special.bessel_j1
special.bessel_y0 special.bessel_y1 special.chebyshev_polynomial_t special.chebyshev_polynomial_u
special.chebyshev_polynomial_v special.chebyshev_polynomial_w special.entr special.erfcx
special.hermite_polynomial_h special.hermite_polynomial_he special.i0e special.i1 special.i1e
special.laguerre_polynomial_l special.legendre_polynomial_p special.log_ndtr
special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0
special.modified_bessel_k1 special.ndtr special.ndtri special.polygamma.special_polygamma_n_0
special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1
special.shifted_chebyshev_polynomial_t special.shifted_chebyshev_polynomial_u
special.shifted_chebyshev_polynomial_v special.shifted_chebyshev_polynomial_w
special.spherical_bessel_j0 special.xlog1py special.zeta split split.list_args split_with_sizes
split_with_sizes_copy sqrt square squeeze squeeze.multiple squeeze_copy stack std std.unbiased
std_mean std_mean.unbiased stft sub sum sum_to_size t t_copy take take_along_dim tan tanh tensordot
tile to topk torch.ops.aten._safe_softmax.default trace transpose transpose_copy trapezoid trapz
triangular_solve tril triu true_divide trunc unbind unbind_copy unflatten unfold unfold_copy unique
unique_consecutive unravel_index unsafe_chunk unsafe_split unsqueeze unsqueeze_copy var var.unbiased
var_mean var_mean.unbiased vdot view view_as view_as_complex view_copy vsplit vstack where xlogy
zero_ zeros zeros_like
"""

# The CPU's libraries (MKL, LAPACK) leave results in an order of their own, and so do a few kernels.
_OTHER_STRIDES = """
argwhere fft.fft fft.hfft fft.hfft2 fft.hfftn fft.ifft fft.ihfft fft.ihfft2 fft.ihfftn fft.irfft
fft.rfft linalg.cholesky linalg.cholesky_ex linalg.solve_triangular nn.functional.logsigmoid nonzero
roll
"""

# Their gradients need an operator that runs on the host.
_NO_GRADIENT = """
index_fill
"""

ROWS = [Row(name) for name in _PLAIN.split()]
ROWS += [Row(name, strides=False) for name in _OTHER_STRIDES.split()]
ROWS += [Row(name, gradient=False) for name in _NO_GRADIENT.split()]
# Sums of 50 logarithms, each rounded at a magnitude of 100.
ROWS += [Row("nn.functional.ctc_loss", rtol=2e-3, atol=1e-4)]
