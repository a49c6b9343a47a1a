"""One layer of the decoder with gradients for its input and its adapter, made to keep and move little.

Each function below keeps what it cannot cheaply compute again: a layer's two residual inputs, its rotated queries, keys
and values, what was attended, and the gate and up projections. Normalised inputs, the activation and the adapter's
inner products are computed twice. Weights are frozen, so no product is spent on their gradients.

Shape letters as in `decoder`, and R ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from sortie.models.config import DecoderConfig
from sortie.models.lora import FUSED, FusedLora

if TYPE_CHECKING:
    from sortie.models.decoder import Attend, Block
    from sortie.models.linear import Linear

Factors = tuple[Tensor, Tensor] | None
"""A [R, inputs] and B [outputs, R] of one linear; None: no adapter there."""


def trainable_block(
    c: DecoderConfig,
    w: Block,
    index: int,
    x_TD: Tensor,
    cos_T1H: Tensor,
    sin_T1H: Tensor,
    attend: Attend,
    lora: FusedLora | None,
) -> Tensor:
    """What `Decoder._block` computes, differentiable in `x_TD` and in the factors of `lora`."""
    qkv, o, gate_up, down = (lora and lora.factors.get((index, name)) for name in FUSED)
    qkv_T = _call(_NormLinear, x_TD, w.input_norm, c.norm_eps, w.qkv, qkv)
    if w.qk_norm is not None:
        qk, v = qkv_T.view(-1, c.heads + 2 * c.kv_heads, c.head_dim).split([c.heads + c.kv_heads, c.kv_heads], dim=1)
        qkv_T = torch.cat((F.rms_norm(qk, (c.head_dim,), None, c.norm_eps) * w.qk_norm, v), dim=1).flatten(1)
    q_TNH, k_TKH, v_TKH = _Heads.apply(qkv_T, cos_T1H, sin_T1H, c.heads, c.kv_heads)  # type: ignore[no-untyped-call]
    attended = attend(index, q_TNH, k_TKH, v_TKH).reshape(-1, c.heads * c.head_dim)
    x_TD = _call(_AddLinear, x_TD, attended, w.o, o)
    gate_up_T = _call(_NormLinear, x_TD, w.post_norm, c.norm_eps, w.gate_up, gate_up)
    return _call(_AddGatedLinear, x_TD, gate_up_T, w.down, down)


def _call(function: type[torch.autograd.Function], *inputs: Any) -> Tensor:
    *rest, linear, factors = inputs
    out: Tensor = function.apply(*rest, linear, *(factors or (None, None)))
    return out


class _NormLinear(torch.autograd.Function):
    """norm(x) (W + B A)^T + bias; keeps x, and the factor that norms it."""

    @staticmethod
    def forward(
        ctx: Any, x_TD: Tensor, norm: Tensor, eps: float, linear: Linear, a: Tensor | None, b: Tensor | None
    ) -> Tensor:
        exact_TD = x_TD.to(_exact(x_TD), copy=True)
        length_T1 = torch.linalg.vector_norm(exact_TD, dim=1, keepdim=True)
        scale_T1 = (length_T1.square_() / x_TD.shape[1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x_TD, scale_T1, norm, a, b)
        ctx.linear = linear
        return _product(exact_TD.mul_(scale_T1).mul_(norm).to(x_TD.dtype), linear, a, b)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None, None, Tensor | None, Tensor | None]:
        x_TD, exact_T1, norm, a, b = ctx.saved_tensors
        scale_T1 = exact_T1.to(x_TD.dtype)
        unit_TD = x_TD * scale_T1
        dh_TD, da, db = _product_backward(grads[0], unit_TD * norm, ctx.linear, a, b, wanted=ctx.needs_input_grad[0])
        if dh_TD is None:
            return None, None, None, None, da, db
        # y = x / |x| (up to a factor): the part of the gradient along x vanishes.
        dunit_TD = dh_TD.mul_(norm)
        along_T1 = (dunit_TD * unit_TD).sum(1, keepdim=True, dtype=_exact(x_TD)).div_(-x_TD.shape[1]).to(x_TD.dtype)
        return dunit_TD.addcmul_(unit_TD, along_T1).mul_(scale_T1), None, None, None, da, db


class _Heads(torch.autograd.Function):
    """Rotated queries and keys, and values, out of their fused product; keeps nothing of the size of its input."""

    @staticmethod
    def forward(
        ctx: Any, qkv_T: Tensor, cos_T1H: Tensor, sin_T1H: Tensor, heads: int, kv_heads: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(cos_T1H, sin_T1H)
        ctx.sizes = [heads, kv_heads, kv_heads]
        qkv = qkv_T.view(len(qkv_T), -1, cos_T1H.shape[2])
        q, k, v = qkv.split(ctx.sizes, dim=1)
        return _rotated(q, cos_T1H, sin_T1H), _rotated(k, cos_T1H, sin_T1H), v.contiguous()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        cos_T1H, sin_T1H = ctx.saved_tensors
        dqkv = grads[0].new_empty(len(cos_T1H), sum(ctx.sizes), cos_T1H.shape[2])
        for whole, g in zip(dqkv.split(ctx.sizes, dim=1)[:2], grads[:2], strict=True):
            whole.copy_(_rotated(g, cos_T1H, -sin_T1H))
        dqkv[:, -ctx.sizes[2] :] = grads[2]
        return dqkv.flatten(1), None, None, None, None


class _AddLinear(torch.autograd.Function):
    """x + h (W + B A)^T + bias; keeps h."""

    @staticmethod
    def forward(ctx: Any, x_TD: Tensor, h: Tensor, linear: Linear, a: Tensor | None, b: Tensor | None) -> Tensor:
        ctx.save_for_backward(h, a, b)
        ctx.linear = linear
        return _product(h, linear, a, b).add_(x_TD)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None, Tensor | None, Tensor | None]:
        h, a, b = ctx.saved_tensors
        dh, da, db = _product_backward(grads[0], h, ctx.linear, a, b, wanted=ctx.needs_input_grad[1])
        return grads[0], dh, None, da, db


class _AddGatedLinear(torch.autograd.Function):
    """x + (silu(gate) up) (W + B A)^T; keeps gate and up."""

    @staticmethod
    def forward(
        ctx: Any, x_TD: Tensor, gate_up_T: Tensor, linear: Linear, a: Tensor | None, b: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(gate_up_T, a, b)
        ctx.linear = linear
        gate_TF, up_TF = gate_up_T.chunk(2, dim=1)
        return _product(F.silu(gate_TF).mul_(up_TF), linear, a, b).add_(x_TD)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None, Tensor | None, Tensor | None]:
        gate_up_T, a, b = ctx.saved_tensors
        gate_TF, up_TF = gate_up_T.chunk(2, dim=1)
        active_TF = F.silu(gate_TF)
        wanted = ctx.needs_input_grad[1]
        dh_TF, da, db = _product_backward(grads[0], active_TF * up_TF, ctx.linear, a, b, wanted=wanted)
        if dh_TF is None:
            return grads[0], None, None, da, db
        dgate_up_T = torch.empty_like(gate_up_T)
        dgate_TF, dup_TF = dgate_up_T.chunk(2, dim=1)
        torch.mul(dh_TF, active_TF, out=dup_TF)
        torch.ops.aten.silu_backward.grad_input(dh_TF.mul_(up_TF), gate_TF, grad_input=dgate_TF)
        return grads[0], dgate_up_T, None, da, db


def _product(h: Tensor, linear: Linear, a: Tensor | None, b: Tensor | None) -> Tensor:
    y = F.linear(h, linear.weight, linear.bias)
    return y if a is None or b is None else y.addmm_(h @ a.T, b.T)


def _product_backward(
    g: Tensor, h: Tensor, linear: Linear, a: Tensor | None, b: Tensor | None, *, wanted: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of the input, if wanted, and of A and B."""
    dh = g @ linear.weight if wanted else None
    if a is None or b is None:
        return dh, None, None
    inner_TR, dinner_TR = h @ a.T, g @ b
    if dh is not None:
        dh.addmm_(dinner_TR, a)
    return dh, dinner_TR.T @ h, (inner_TR.T @ g).T


def _rotated(x: Tensor, cos_T1H: Tensor, sin_T1H: Tensor) -> Tensor:
    """As `decoder.rotate`."""
    return torch.addcmul(x * cos_T1H, x.roll(x.shape[-1] // 2, dims=-1), sin_T1H)


def _exact(x: Tensor) -> torch.dtype:
    """What sums over x are computed in."""
    return torch.promote_types(x.dtype, torch.float32)
