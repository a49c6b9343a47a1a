"""One plain causal pass: what engine and trainer must agree with."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sortie.models.attention import CausalAttend
from sortie.models.decoder import Decoder
from sortie.models.lora import Lora
from sortie.models.threads import passing_pool


def plain_logprobs(
    decoder: Decoder, token_ids: Sequence[int], lora: Lora | None = None, temperature: float = 1.0
) -> list[float]:
    """log p of each token but the first, given all before it: no cache, no batch, no shared prefixes."""
    with passing_pool(), torch.inference_mode():
        ids_T = torch.tensor(token_ids, device=decoder.device)
        attend = CausalAttend([len(token_ids)], decoder.device)
        delta = lora.fuse().to(decoder.dtype) if lora is not None else None
        hidden_TD = decoder.forward(ids_T, attend.positions_T.to(decoder.device), attend, delta)
        law_TV = (decoder.logits(hidden_TD[:-1]).float() / temperature).log_softmax(dim=-1)
        chosen: list[float] = law_TV.gather(1, ids_T[1:].unsqueeze(1)).squeeze(1).tolist()
    return chosen
