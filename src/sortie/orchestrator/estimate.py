"""What a run will cost, before it starts. Memory is counted; time is a guess from a measured product, refined later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sortie.envs import Env
from sortie.models.config import DecoderConfig
from sortie.models.lora import projection_shapes
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.metrics import duration

GB = 1e9
_SHARE_OF_LIMIT = 0.3
"""Part of its token limit a rollout typically uses. A guess: the evaluation before training replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Bytes and seconds."""

    weights: float
    adapter: float
    kv: float
    activations: float
    seconds: float
    rollouts: int
    steps: int

    @property
    def memory(self) -> float:
        """All of it together; the interpreter and its libraries add about 1 GB."""
        return self.weights + self.adapter + self.kv + self.activations

    def lines(self) -> list[str]:
        """For the console."""
        return [
            f"memory about {self.memory / GB + 1:.1f} GB: weights {self.weights / GB:.2f}, adapter and optimiser "
            f"{self.adapter / GB:.2f}, KV {self.kv / GB:.2f}, training {self.activations / GB:.2f}, libraries 1",
            f"time about {duration(self.seconds)} for {self.steps} steps and {self.rollouts} rollouts "
            "(a guess until the first evaluation is done)",
        ]


def estimate(config: RunConfig, envs: Sequence[Env]) -> Estimate:
    """What `config` costs on this machine; fetches the model if need be, since its sizes decide.

    Raises: UsageError if the model cannot be had.
    """
    from sortie.models import resolve
    from sortie.models.placement import flops_per_second

    model = DecoderConfig.read(resolve(config.model))
    weights = _parameters(model)
    per_layer = {target: sum(projection_shapes(model)[target]) for target in config.lora.targets}
    adapter = config.lora.rank * model.layers * sum(per_layer.values())
    size = 4 if config.dtype == "float32" else 2
    # Per token and layer autograd keeps about 9 hidden, 4 feed-forward and 3 attention-sized arrays.
    kept = 9 * model.hidden + 4 * model.feed_forward + 3 * model.heads * model.head_dim
    layers_kept = 1 if config.trainer.remat else model.layers
    training = config.trainer.pack_tokens * kept * layers_kept * size + 3 * 4 * config.trainer.logit_chunk * model.vocab
    per_step = config.rollouts.groups * config.rollouts.group_size
    evaluations = 1 + config.eval.before + (config.steps // config.eval.every if config.eval.every else 0)
    evaluated = evaluations * len(envs) * config.eval.tasks
    tokens = _SHARE_OF_LIMIT * config.rollouts.limits.rollout_tokens
    work = 2 * weights * tokens * (evaluated + 3.5 * config.steps * per_step)
    return Estimate(
        weights=weights * size,
        adapter=adapter * 4 * 6,  # master, gradient, two moments, two published versions
        kv=config.engine.kv_memory_mb * 2**20,
        activations=training,
        seconds=work / (0.7 * flops_per_second()),
        rollouts=evaluated + config.steps * per_step,
        steps=config.steps,
    )


def _parameters(model: DecoderConfig) -> int:
    block = sum(outputs * inputs for outputs, inputs in projection_shapes(model).values())
    return model.layers * block + model.vocab * model.hidden * (1 if model.tied_head else 2)
