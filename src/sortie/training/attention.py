"""Attention over a trie of segments in few calls, forward and backward.

What a token sees is made of parts: its own segment causally, and each segment above it in full. Segments lie in
depth-first order, so all that see a segment follow it as one run of queries: one product, no mask, no copied keys. Own
parts are computed many segments at once. Parts are joined by their log-sum-exp (Rabe & Staats 2021, arXiv 2112.05682);
the backward pass recomputes probabilities from the joint one (FlashAttention, arXiv 2205.14135, alg. 4), in products
of the inputs' dtype: torch's own CPU kernel multiplies bfloat16 without the matrix units there, ten times slower.

Shape letters: T tokens, N query heads, K key/value heads, G = N / K, H head size; of a part: B batches, L query
positions, S keys. Queries are laid [K, T, G, H] here: a run of tokens is a slice, its G heads more queries of one key.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FULLNESS = 0.7
"""Least length of a segment, as a share of the longest that it is computed beside."""


@dataclass(frozen=True, slots=True)
class Own:
    """Segments that look at themselves, computed at once, each padded at its end to `length`."""

    places: Tensor
    """[count x length] where each position's token is; at padding, that of the segment's first token."""
    real: Tensor | None
    """[count x length] False at padding; None: there is none, and the segments are neighbours."""
    length: int

    def take(self, x: Tensor) -> Tensor:
        """[K, T, ...] -> [K count, length, ...]."""
        if self.real is None:
            taken = x.narrow(1, int(self.places[0]), len(self.places))
        else:
            taken = x.index_select(1, self.places)
        return taken.reshape(-1, self.length, *x.shape[2:])

    def put(self, whole: Tensor, x: Tensor) -> None:
        """The reverse, without padding."""
        x = x.reshape(len(whole), -1, *whole.shape[2:])
        if self.real is None:
            whole.narrow(1, int(self.places[0]), len(self.places)).copy_(x)
        else:
            whole[:, self.places[self.real]] = x[:, self.real]


@dataclass(frozen=True, slots=True)
class Above:
    """A segment and the run of tokens below it, which all see it whole."""

    keys: slice
    queries: slice


@dataclass(frozen=True, slots=True)
class Plan:
    """The parts of one pack's attention."""

    own: list[Own]
    above: list[Above]


def plan_of(starts: Sequence[int], lengths: Sequence[int], ends: Sequence[int], device: torch.device) -> Plan:
    """Parts for segments in depth-first order: where each starts, its length, and where all below it ends."""
    spans = zip(starts, lengths, ends, strict=True)
    above = [Above(slice(s, s + n), slice(s + n, end)) for s, n, end in spans if end > s + n]
    buckets: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], starts[i])):
        if not buckets or lengths[i] < FULLNESS * lengths[buckets[-1][0]]:
            buckets.append([])
        buckets[-1].append(i)
    return Plan([_own([starts[i] for i in b], [lengths[i] for i in b], device) for b in buckets], above)


def _own(starts: list[int], lengths: list[int], device: torch.device) -> Own:
    length = max(lengths)
    steps = torch.arange(length).expand(len(starts), length)
    real = steps < torch.tensor(lengths).unsqueeze(1)
    places = torch.tensor(starts).unsqueeze(1) + torch.where(real, steps, 0)
    neighbours = bool(real.all()) and starts == [starts[0] + i * length for i in range(len(starts))]
    return Own(places.flatten().to(device), None if neighbours else real.flatten().to(device), length)


def planned_attention(q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor, plan: Plan) -> Tensor:
    """Softmax attention of every token over its path, [T, N, H]."""
    out: Tensor = _PlannedAttention.apply(q_TNH, k_TKH, v_TKH, plan)  # type: ignore[no-untyped-call]
    return out


class _PlannedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor, plan: Plan) -> Tensor:
        q = _by_key_head(q_TNH, k_TKH.shape[1])
        k, v = (x.transpose(0, 1).contiguous() for x in (k_TKH, v_TKH))  # the kernel takes no other stride than 1
        out = torch.empty_like(q)
        norms_KTG = q.new_empty(q.shape[:3], dtype=torch.promote_types(q.dtype, torch.float32))
        for own in plan.own:
            o, norm = attend(own.take(q), own.take(k), own.take(v), causal=True)
            own.put(out, o)
            own.put(norms_KTG, norm)
        for part in plan.above:
            o, norm = attend(q[:, part.queries], k[:, part.keys], v[:, part.keys], causal=False)
            kept = norms_KTG[:, part.queries]
            out[:, part.queries].lerp_(o, torch.sigmoid(norm - kept).unsqueeze(-1).to(o.dtype))
            torch.logaddexp(kept, norm, out=kept)
        attended_TNH = out.transpose(0, 1).reshape(q_TNH.shape)
        ctx.save_for_backward(q_TNH, k_TKH, v_TKH, attended_TNH, norms_KTG)
        ctx.plan = plan
        return attended_TNH

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q_TNH, k_TKH, v_TKH, attended_TNH, norms_KTG = ctx.saved_tensors
        q, g = (_by_key_head(x, k_TKH.shape[1]) for x in (q_TNH, grads[0]))
        k, v = (x.transpose(0, 1).contiguous() for x in (k_TKH, v_TKH))
        means_TN = (grads[0] * attended_TNH).sum(-1, dtype=norms_KTG.dtype)
        # Scores meet norms rounded to their own dtype; what rounding left out scales the row, so it goes into g.
        norms = norms_KTG.to(q.dtype)
        rest_KTG = (norms.to(norms_KTG.dtype) - norms_KTG).exp()
        means = (_by_key_head(means_TN.unsqueeze(-1), len(q)).squeeze(-1) * rest_KTG).to(q.dtype)
        g = g * rest_KTG.unsqueeze(-1).to(g.dtype)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        for own in ctx.plan.own:
            for whole, part in zip((dq, dk, dv), _own_backward(own, q, k, v, g, norms, means), strict=True):
                own.put(whole, part)
        scale = q.shape[-1] ** -0.5
        for part in ctx.plan.above:
            below, seen = part.queries, part.keys
            q_r, g_r, dq_r = (x[:, below].flatten(1, 2) for x in (q, g, dq))
            k_s, v_s = k[:, seen], v[:, seen]
            p, ds = _probabilities(q_r, k_s, v_s, g_r, -norms[:, below].reshape(len(q), -1, 1), means[:, below])
            dq_r.baddbmm_(ds, k_s, alpha=scale)
            dk[:, seen].baddbmm_(ds.mT, q_r, alpha=scale)
            dv[:, seen].baddbmm_(p.mT, g_r)
        return dq.transpose(0, 1).reshape(q_TNH.shape), dk.transpose(0, 1), dv.transpose(0, 1), None


def _by_key_head(x_TNH: Tensor, key_heads: int) -> Tensor:
    """[T, N, H] -> [K, T, G, H], contiguous."""
    return x_TNH.reshape(len(x_TNH), key_heads, -1, x_TNH.shape[-1]).transpose(0, 1).contiguous()


def attend(q_BLGH: Tensor, k_BSH: Tensor, v_BSH: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """Attention and the log-sum-exp of its scores, [B, L, G, H] and [B, L, G] (at least fp32)."""
    q, g = q_BLGH.transpose(1, 2), q_BLGH.shape[2]
    k, v = (x.unsqueeze(1).expand(-1, g, -1, -1) for x in (k_BSH, v_BSH))
    if q.device.type == "cpu":
        out, norm = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
    else:
        out, norm = _plain(q, k, v, causal)
    return out.transpose(1, 2), norm.transpose(1, 2)


def _plain(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """What torch's fused CPU kernel returns, from its definition."""
    scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) * q.shape[-1] ** -0.5
    if causal:
        scores = scores.masked_fill(_future(scores.shape[-1], scores), -math.inf)
    norm = scores.logsumexp(-1)
    return (scores - norm.unsqueeze(-1)).exp().to(v.dtype) @ v, norm


def _own_backward(
    own: Own, q: Tensor, k: Tensor, v: Tensor, g: Tensor, norms: Tensor, means: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of queries, keys and values from the segments' look at themselves."""
    heads, scale = q.shape[2], q.shape[-1] ** -0.5
    if own.real is not None:  # padding repeats a token; without probability it adds nothing anywhere
        norms = own.take(norms).masked_fill_(~own.real.view(-1, own.length, 1).repeat(len(q), 1, 1), math.inf)
    else:
        norms = own.take(norms)
    future_LS = _future(own.length, q)
    bias = (-norms.unsqueeze(-1)).masked_fill(future_LS.unsqueeze(1), -math.inf).flatten(1, 2)
    q, g = own.take(q).flatten(1, 2), own.take(g).flatten(1, 2)
    k, v = own.take(k), own.take(v)
    p, ds = _probabilities(q, k, v, g, bias, own.take(means))
    dq = torch.bmm(ds, k).mul_(scale).unflatten(1, (-1, heads))
    return dq, torch.bmm(ds.mT, q).mul_(scale), torch.bmm(p.mT, g)


def _probabilities(
    q_BLH: Tensor, k_BSH: Tensor, v_BSH: Tensor, g_BLH: Tensor, bias: Tensor, means_BL: Tensor
) -> tuple[Tensor, Tensor]:
    """Probabilities exp(scores + bias), and the loss's derivatives by the scores, both [B, L, S]."""
    shape = (*q_BLH.shape[:2], k_BSH.shape[1])
    p_BLS = torch.baddbmm(bias.expand(shape), q_BLH, k_BSH.mT, alpha=q_BLH.shape[-1] ** -0.5).exp_()
    means_BL1 = means_BL.reshape(len(q_BLH), -1, 1)
    return p_BLS, torch.baddbmm(means_BL1.expand(shape), g_BLH, v_BSH.mT, beta=-1).mul_(p_BLS)


def _future(length: int, like: Tensor) -> Tensor:
    """[L, L] True where a key comes after the query."""
    return torch.ones(length, length, dtype=torch.bool, device=like.device).triu(1)
