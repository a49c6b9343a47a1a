"""Architectures outside our decoder: a correct slow path through transformers, said aloud.

The transformers model runs as it is, except that each of its layers hands queries, keys and values to the caller's
`Attend`, so engine and trainer drive it like the decoder. Whatever that would get wrong is refused when the model is
loaded: its logits, computed in two pieces over remembered keys, must be those of the untouched model.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sortie.core.errors import UsageError
from sortie.core.policy import ALL_TARGETS
from sortie.models.attention import grouped_attention
from sortie.models.config import DecoderConfig, read_config, unsupported
from sortie.models.decoder import Attend, Decoder, Delta
from sortie.models.lora import FUSED, projection_shapes

logger = logging.getLogger(__name__)

ATTENTION = "sortie"
"""Name under which transformers finds our attention."""
_PROJECTION = re.compile(r"(?:^|\.)layers\.(\d+)\.(?:self_attn|mlp)\.(\w+_proj)$")
_IGNORABLE = frozenset(
    {"dropout", "is_causal", "sliding_window", "position_ids", "cache_position", "use_cache", "cache"}
)
"""What layers may pass to attention without changing its result: no dropout is applied, windows are never exceeded."""


def is_native(config: Mapping[str, Any]) -> bool:
    """Whether our own decoder computes the architecture of that config.json."""
    return unsupported(config) is None


def load_decoder(folder: Path, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Decoder:
    """Our decoder where it computes the architecture, else the same through transformers, with a warning.

    Raises: UsageError if neither can load the folder.
    """
    reason = unsupported(read_config(folder))
    if reason is None:
        return Decoder.load(folder, dtype=dtype, device=device)
    logger.warning("%s: %s; running it through transformers instead, correct but slower", folder, reason)
    return TransformersDecoder.load(folder, dtype=dtype, device=device)


@dataclass(slots=True)
class _Call:
    """What the layers of one forward pass need to find."""

    attend: Attend
    delta: Delta | None
    updates: dict[tuple[int, str], tuple[Tensor, Tensor]] = field(default_factory=dict)
    """(layer, fused linear) -> its input and what the adapter adds to its outputs."""


_CALL: ContextVar[_Call] = ContextVar("call")


class TransformersDecoder(Decoder):
    """A transformers model behind the decoder's interface."""

    def __init__(self, config: DecoderConfig, causal: Any) -> None:
        self.config = config
        self.body = causal.base_model
        self.weights = list(dict.fromkeys(causal.parameters()))
        self.embed_VD = self.body.get_input_embeddings().weight
        self.head_VD = causal.get_output_embeddings().weight
        # The body runs by itself; in its place the head gets hidden states, so that `logits` keeps whatever scaling or
        # capping the architecture has there.
        self.head = causal
        setattr(causal, causal.base_model_prefix, _HiddenStates())
        self._adaptable = self._hook_projections()

    @classmethod
    def load(cls, folder: Path, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> TransformersDecoder:
        """Load a folder through transformers and check it against the untouched model.

        Raises: UsageError if transformers cannot load it, or its attention is not one that `Attend` computes.
        """
        from transformers import AutoModelForCausalLM

        _register()
        probe_T = torch.arange(1, 13, device=device) * 7
        try:
            causal = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").to(device)
            causal.eval().requires_grad_(False)
            config = _sizes(causal.config)
            with torch.inference_mode():
                expected_TV = causal(probe_T[None] % config.vocab, use_cache=False).logits[0]
            causal.set_attn_implementation(ATTENTION)
        except (OSError, ValueError, KeyError, AttributeError, ImportError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UsageError(f"transformers cannot run {folder} as a decoder: {reason}") from None
        decoder = cls(config, causal)
        decoder._check(probe_T % config.vocab, expected_TV, folder)
        return decoder

    @property
    def parameters(self) -> int:
        """Number of weights, a tied head counted once."""
        return sum(weight.numel() for weight in self.weights)

    def forward(
        self,
        token_ids_T: Tensor,
        positions_T: Tensor,
        attend: Attend,
        delta: Delta | None = None,
        *,
        remat: bool = False,
    ) -> Tensor:
        """Hidden states after the final norm, [T, D]. `remat` saves no memory here: activations are kept.

        Raises: UsageError if there is a delta and the architecture's layers have no such projections.
        """
        if delta is not None and not self._adaptable:
            raise UsageError(
                f"adapters on {self.config.family!r} models are not supported: "
                f"their layers are not built from {', '.join(ALL_TARGETS)}"
            )
        token = _CALL.set(_Call(attend, delta))
        try:
            hidden: Tensor = self.body(
                input_ids=token_ids_T[None], position_ids=positions_T[None], use_cache=False
            ).last_hidden_state
        finally:
            _CALL.reset(token)
        return hidden[0]

    def pack(self) -> None:
        """Nothing: the layers are transformers' own."""

    def logits(self, hidden_TD: Tensor) -> Tensor:
        """Unnormalised log-probabilities, [T, V]."""
        out: Tensor = self.head(inputs_embeds=hidden_TD[None], use_cache=False).logits
        return out[0]

    def _check(self, probe_T: Tensor, expected_TV: Tensor, folder: Path) -> None:
        """Raises: UsageError unless two pieces over remembered keys give the untouched model's logits."""
        memory = _Remember(self.config)
        positions_T = torch.arange(len(probe_T), device=probe_T.device)
        half = len(probe_T) // 2
        try:
            with torch.inference_mode():
                pieces = [
                    self.logits(self.forward(probe_T[part], positions_T[part], memory))
                    for part in (slice(0, half), slice(half, None))
                ]
        except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise UsageError(f"{folder}: {self.config.family!r} cannot be run piece by piece: {error}") from None
        if sorted(memory.layers) != list(range(self.config.layers)):
            raise UsageError(f"{folder}: not every layer of {self.config.family!r} is plain attention")
        found_TV = torch.cat(pieces)
        spread = float((expected_TV - expected_TV.mean(-1, keepdim=True)).abs().max())
        tolerance = spread * (1e-4 if expected_TV.dtype == torch.float32 else 5e-2)
        if not torch.allclose(found_TV, expected_TV, rtol=0, atol=tolerance):
            worst = float((found_TV - expected_TV).abs().max())
            raise UsageError(
                f"{folder}: {self.config.family!r} keeps state that is not keys and values of plain attention: "
                f"piece by piece its logits are off by {worst:.2g}"
            )

    def _hook_projections(self) -> bool:
        """Let adapters reach the projections; False if any layer lacks one or has it in another shape."""
        shapes = projection_shapes(self.config)
        found: dict[tuple[int, str], nn.Linear] = {}
        for name, module in self.body.named_modules():
            match = _PROJECTION.search(name)
            if match and isinstance(module, nn.Linear) and shapes.get(match[2]) == tuple(module.weight.shape):
                found[int(match[1]), match[2]] = module
        if len(found) != self.config.layers * len(ALL_TARGETS):
            return False
        for linear, projections in FUSED.items():
            sizes = [shapes[p][0] for p in projections]
            for layer in range(self.config.layers):
                for index, projection in enumerate(projections):
                    at = slice(sum(sizes[:index]), sum(sizes[: index + 1]))
                    found[layer, projection].register_forward_hook(_hook(layer, linear, at, sum(sizes)))
        return True


class _HiddenStates(nn.Module):
    """Stands where the body was: passes on the hidden states it is given."""

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> _BodyOutput:
        return _BodyOutput(inputs_embeds)


class _BodyOutput:
    """Hidden states, and None for whatever else a head may look for."""

    def __init__(self, last_hidden_state: Tensor) -> None:
        self.last_hidden_state = last_hidden_state

    def __getattr__(self, name: str) -> None:
        return None

    def __getitem__(self, index: int) -> Tensor | None:
        return self.last_hidden_state if index == 0 else None


class _Remember:
    """Causal attention of one sequence that comes in pieces."""

    def __init__(self, config: DecoderConfig) -> None:
        self.shape = (config.kv_heads, config.head_dim)
        self.layers: dict[int, tuple[Tensor, Tensor]] = {}

    def __call__(self, layer: int, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> Tensor:
        if k_TKH.shape[1:] != self.shape or v_TKH.shape[1:] != self.shape:
            raise ValueError(f"keys {tuple(k_TKH.shape)} or values {tuple(v_TKH.shape)} are not (T, {self.shape})")
        if layer in self.layers:
            k, v = self.layers[layer]
            k_TKH, v_TKH = torch.cat((k, k_TKH)), torch.cat((v, v_TKH))
        self.layers[layer] = k_TKH, v_TKH
        queries, keys = len(q_TNH), len(k_TKH)
        mask_QS = torch.ones(queries, keys, dtype=torch.bool, device=q_TNH.device).tril(keys - queries)
        return grouped_attention(q_TNH, k_TKH, v_TKH, mask_QS)


def _hook(layer: int, linear: str, at: slice, width: int) -> Any:
    def add(_: nn.Module, args: tuple[Tensor, ...], y: Tensor) -> Tensor:
        call = _CALL.get()
        if call.delta is None:
            return y
        # Projections that read the same input share one update, computed by whichever comes first.
        x, update = call.updates.get((layer, linear), (None, None))
        if update is None or x is not args[0]:
            flat = args[0].reshape(-1, args[0].shape[-1])
            update = call.delta(layer, linear, flat, y.new_zeros(len(flat), width))
            call.updates[layer, linear] = args[0], update
        return y + update[:, at].reshape(y.shape)

    return add


def _attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    """The interface of transformers' attention functions: [1, heads, T, H] in, [1, T, heads, H] out."""
    scaling = options.pop("scaling", None)
    unknown = sorted(k for k, v in options.items() if v is not None and v is not False and k not in _IGNORABLE)
    layer = getattr(module, "layer_idx", None)
    if unknown or not isinstance(layer, int):
        raise ValueError(f"its attention takes {', '.join(unknown) or 'no layer index'}")
    if scaling is not None:
        query = query * (scaling * math.sqrt(query.shape[-1]))  # `Attend` divides by the root itself
    q_TNH, k_TKH, v_TKH = (t[0].transpose(0, 1).contiguous() for t in (query, key, value))
    return _CALL.get().attend(layer, q_TNH, k_TKH, v_TKH)[None], None


def _register() -> None:
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attention)


def _sizes(config: Any) -> DecoderConfig:
    """Sizes of a transformers config, as far as engine and trainer use them.

    Raises: AttributeError if it has no such sizes.
    """
    heads, hidden = config.num_attention_heads, config.hidden_size
    return DecoderConfig(
        family=config.model_type,
        vocab=config.vocab_size,
        hidden=hidden,
        feed_forward=getattr(config, "intermediate_size", None) or 4 * hidden,
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or hidden // heads,
        norm_eps=0.0,  # this and the rotary settings are the transformers model's own business
        rope_theta=0.0,
        rope_scaling=None,
        tied_head=bool(getattr(config, "tie_word_embeddings", False)),
        max_positions=_trusted_positions(config),
    )


def _trusted_positions(config: Any) -> int:
    """Most positions at which full attention is what the architecture computes."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    limits = [getattr(config, "max_position_embeddings", None) or 2048]
    limits += [getattr(config, name, None) for name in ("sliding_window", "attention_chunk_size")]
    # These stretch their frequencies with the length of the sequence, so keys remembered below the limit would differ.
    if rope.get("rope_type", rope.get("type")) in ("dynamic", "longrope"):
        limits.append(rope.get("original_max_position_embeddings"))
    return min(limit for limit in limits if limit)
