"""One decoder for the Llama, Qwen2, Qwen3 and Mistral families, shared by engine and trainer.

Tokens come as one flat run of T, whatever sequences they belong to; who attends to whom is the caller's business, given
as an `Attend`: the engine passes attention over its KV blocks, the trainer attention over a trie of rows, tests plain
causal attention. Base weights are frozen and shared by reference; a LoRA enters as a `Delta`.

Shape letters: T tokens, D hidden, N query heads, K key/value heads, H head size, F feed-forward, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from sortie.core.errors import UsageError
from sortie.models.config import DecoderConfig
from sortie.models.linear import Linear
from sortie.models.lora import FusedLora
from sortie.models.norm import add_norm
from sortie.models.rope import RotaryTable
from sortie.models.trainable import trainable_block


class Attend(Protocol):
    """Attention of one layer: q_TNH against k_TKH and v_TKH of these tokens and whatever came before."""

    def __call__(self, layer: int, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> Tensor: ...


class Delta(Protocol):
    """What an adapter adds to one fused linear layer (`qkv`, `o`, `gate_up` or `down`): returns y, changed or not."""

    def __call__(self, layer: int, linear: str, x: Tensor, y: Tensor) -> Tensor: ...


@dataclass(slots=True)
class Block:
    """Weights of one layer. Query, key and value are one matrix, as are gate and up: fewer, larger products."""

    input_norm: Tensor
    qkv: Linear
    qk_norm: Tensor | None
    """[N + K, H]: per-head norm weights of queries, then keys (Qwen3)."""
    o: Linear
    post_norm: Tensor
    gate_up: Linear
    down: Linear

    @property
    def linears(self) -> tuple[Linear, ...]:
        return self.qkv, self.o, self.gate_up, self.down


class Decoder:
    """Frozen weights and the forward pass over them."""

    def __init__(self, config: DecoderConfig, embed: Tensor, blocks: list[Block], norm: Tensor, head: Tensor) -> None:
        self.config = config
        self.embed_VD = embed
        self.blocks = blocks
        self.norm = norm
        self.head_VD = head
        self._head = Linear(head)
        self.rotary = RotaryTable(config, embed.device)

    @classmethod
    def load(cls, folder: Path, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Decoder:
        """Read a folder in Hugging Face layout.

        Raises: UsageError if the architecture is of another family or a file or tensor is missing.
        """
        from sortie.models.weights import read_weights

        config = DecoderConfig.read(folder)
        return cls.from_state(config, read_weights(folder, dtype=dtype, device=device))

    @classmethod
    def from_state(cls, config: DecoderConfig, state: dict[str, Tensor]) -> Decoder:
        """Build from tensors under their Hugging Face names, which are consumed: every one must be known."""
        take = _Taker(state)
        embed = take("model.embed_tokens.weight")
        blocks = [_take_block(take, f"model.layers.{i}.", config) for i in range(config.layers)]
        norm = take("model.norm.weight")
        head = embed if config.tied_head else take("lm_head.weight")
        take.finish(ignore=("lm_head.weight",) if config.tied_head else ())
        return cls(config, embed, blocks, norm, head)

    @property
    def device(self) -> torch.device:
        return self.embed_VD.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embed_VD.dtype

    @property
    def parameters(self) -> int:
        """Number of weights; a tied head counts once, and so do norm weights that heads share."""
        tensors = [self.embed_VD, self.norm] + ([] if self.config.tied_head else [self.head_VD])
        tensors += [
            t for b in self.blocks for linear in b.linears for t in (linear.weight, linear.bias) if t is not None
        ]
        tensors += [t for b in self.blocks for t in (b.input_norm, b.qk_norm, b.post_norm) if t is not None]
        repeated = sum(b.qk_norm.numel() - 2 * self.config.head_dim for b in self.blocks if b.qk_norm is not None)
        return sum(t.numel() for t in tensors) - repeated

    def pack(self) -> None:
        """Lay the weights out for decoding, where that gains; called by whoever decodes."""
        for linear in (self._head, *(linear for block in self.blocks for linear in block.linears)):
            linear.pack()

    def forward(
        self,
        token_ids_T: Tensor,
        positions_T: Tensor,
        attend: Attend,
        delta: Delta | None = None,
        *,
        remat: bool = False,
    ) -> Tensor:
        """Hidden states after the final norm, [T, D]. With `remat`, activations are recomputed in the backward pass."""
        x_TD = F.embedding(token_ids_T, self.embed_VD)
        cos_T1H, sin_T1H = self.rotary(positions_T, x_TD.dtype)
        # The layer made for adapters spends nothing on gradients of the weights, so they must be frozen.
        frozen = not self.norm.requires_grad
        block = self._trainable_block if torch.is_grad_enabled() and frozen else self._block
        layer = partial(checkpoint, block, use_reentrant=False) if remat else block
        added_TD = None
        for index in range(len(self.blocks)):
            x_TD, added_TD = layer(index, x_TD, added_TD, cos_T1H, sin_T1H, attend, delta)
        return add_norm(x_TD, added_TD, self.norm, self.config.norm_eps)[1]

    def logits(self, hidden_TD: Tensor) -> Tensor:
        """Unnormalised log-probabilities, [T, V]."""
        return self._head(hidden_TD)

    def _block(
        self,
        index: int,
        x_TD: Tensor,
        added_TD: Tensor | None,
        cos_T1H: Tensor,
        sin_T1H: Tensor,
        attend: Attend,
        delta: Delta | None,
    ) -> tuple[Tensor, Tensor | None]:
        """One layer. What its last linear adds to x is handed on apart, to be added where the next norm is taken."""
        c, w = self.config, self.blocks[index]
        x_TD, h_TD = add_norm(x_TD, added_TD, w.input_norm, c.norm_eps)
        qkv = _linear(h_TD, w.qkv, index, "qkv", delta).reshape(-1, c.heads + 2 * c.kv_heads, c.head_dim)
        qk, v_TKH = qkv.split([c.heads + c.kv_heads, c.kv_heads], dim=1)
        if w.qk_norm is not None:
            qk = F.rms_norm(qk, (c.head_dim,), None, c.norm_eps) * w.qk_norm
        q_TNH, k_TKH = rotate(qk, cos_T1H, sin_T1H).split([c.heads, c.kv_heads], dim=1)
        attended = attend(index, q_TNH, k_TKH, v_TKH).reshape(-1, c.heads * c.head_dim)
        x_TD, h_TD = add_norm(x_TD, _linear(attended, w.o, index, "o", delta), w.post_norm, c.norm_eps)
        gate_TF, up_TF = _linear(h_TD, w.gate_up, index, "gate_up", delta).chunk(2, dim=1)
        return x_TD, _linear(F.silu(gate_TF) * up_TF, w.down, index, "down", delta)

    def _trainable_block(
        self,
        index: int,
        x_TD: Tensor,
        added_TD: Tensor | None,
        cos_T1H: Tensor,
        sin_T1H: Tensor,
        attend: Attend,
        delta: Delta | None,
    ) -> tuple[Tensor, Tensor | None]:
        """The same with gradients, which adds by itself."""
        assert added_TD is None
        if delta is not None and not isinstance(delta, FusedLora):
            raise TypeError(f"a pass with gradients trains one adapter, not a {type(delta).__name__}")
        return trainable_block(self.config, self.blocks[index], index, x_TD, cos_T1H, sin_T1H, attend, delta), None


def rotate(x: Tensor, cos_T1H: Tensor, sin_T1H: Tensor) -> Tensor:
    """Rotary position embedding (Su et al. 2021, arXiv 2104.09864, eq. 34), the two halves of a head as the pairs.

    `sin_T1H` is negative in its first half, so that swapping the halves is all that is left of the rotation.
    """
    return torch.addcmul(x * cos_T1H, x.roll(x.shape[-1] // 2, dims=-1), sin_T1H)


def _linear(x: Tensor, linear: Linear, layer: int, name: str, delta: Delta | None) -> Tensor:
    y = linear(x)
    return y if delta is None else delta(layer, name, x, y)


class _Taker:
    """Hands out tensors by name, each once, and complains about what is missing or left over."""

    def __init__(self, state: dict[str, Tensor]) -> None:
        self.state = state

    def __call__(self, name: str) -> Tensor:
        tensor = self.maybe(name)
        if tensor is None:
            raise UsageError(f"the weights lack {name!r}")
        return tensor

    def maybe(self, name: str) -> Tensor | None:
        return self.state.pop(name, None)

    def finish(self, ignore: tuple[str, ...]) -> None:
        left = sorted(n for n in self.state if n not in ignore and not n.endswith("rotary_emb.inv_freq"))
        if left:
            raise UsageError(f"{len(left)} weights fit nowhere in this architecture, such as {left[0]!r}")


def _take_block(take: _Taker, prefix: str, c: DecoderConfig) -> Block:
    attn, mlp = prefix + "self_attn.", prefix + "mlp."
    biases = [take.maybe(f"{attn}{p}_proj.bias") for p in "qkv"]
    q_norm, k_norm = take.maybe(attn + "q_norm.weight"), take.maybe(attn + "k_norm.weight")
    qk_norm = None
    if q_norm is not None and k_norm is not None:
        qk_norm = torch.cat([q_norm.expand(c.heads, -1), k_norm.expand(c.kv_heads, -1)])
    return Block(
        input_norm=take(prefix + "input_layernorm.weight"),
        qkv=Linear(
            torch.cat([take(f"{attn}{p}_proj.weight") for p in "qkv"]),
            torch.cat([b for b in biases if b is not None]) if biases[0] is not None else None,
        ),
        qk_norm=qk_norm,
        o=Linear(take(attn + "o_proj.weight"), take.maybe(attn + "o_proj.bias")),
        post_norm=take(prefix + "post_attention_layernorm.weight"),
        gate_up=Linear(torch.cat([take(f"{mlp}{p}_proj.weight") for p in ("gate", "up")])),
        down=Linear(take(mlp + "down_proj.weight")),
    )
