"""Training on this machine: adapters over one frozen decoder, on a thread of its own.

Calls take effect in the order they were made, whatever awaits them. `publish` makes an immutable snapshot and hands it
to whoever serves the policy before it returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import torch

from sortie.core.datum import Datum
from sortie.core.errors import TrainingError
from sortie.core.policy import LoraConfig, PolicyVersion
from sortie.models.decoder import Decoder
from sortie.models.lora import Lora
from sortie.models.threads import passing_pool
from sortie.training.checkpoints import load_adapter, save_adapter
from sortie.training.client import AdamParams, OptimOutput, StepOutput
from sortie.training.config import TrainerConfig
from sortie.training.passes import run_pass

T = TypeVar("T")
OnPublish = Callable[[PolicyVersion, Lora], Awaitable[None]]


class LocalTrainer:
    """Makes adapters over one decoder. Close it to end its thread."""

    def __init__(self, decoder: Decoder, config: TrainerConfig | None = None, *, folder: Path) -> None:
        self.decoder = decoder
        self.config = config or TrainerConfig()
        self.folder = folder
        """Where `save` puts checkpoints."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sortie-trainer")

    def create_adapter(
        self, config: LoraConfig, *, name: str = "policy", seed: int = 0, on_publish: OnPublish | None = None
    ) -> LocalTrainingClient:
        """A fresh adapter and the client that trains it."""
        lora = Lora.create(config, self.decoder.config, seed=seed, device=str(self.decoder.device))
        return LocalTrainingClient(self, name, lora, on_publish)

    async def run(self, work: Callable[[], T]) -> T:
        """Do `work` on the trainer's thread, after everything asked for before."""

        def alone() -> T:
            with passing_pool():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, alone)

    def close(self) -> None:
        """Finish the call in progress and end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)


class LocalTrainingClient:
    """A TrainingClient for one adapter; the adapter, its gradients and its optimiser are its own."""

    def __init__(self, trainer: LocalTrainer, name: str, lora: Lora, on_publish: OnPublish | None) -> None:
        self.trainer = trainer
        self.name = name
        self.lora = lora
        self.on_publish = on_publish
        self.steps = 0
        self.published = -1
        """Number of the newest published version; -1: none yet."""
        for tensor in lora.tensors.values():
            tensor.requires_grad_(True)
        self.optimizer = torch.optim.AdamW(list(lora.tensors.values()), lr=0.0, foreach=True)

    async def forward(self, data: Sequence[Datum], loss: str, config: Mapping[str, Any] | None = None) -> StepOutput:
        """Loss and logprobs without gradients."""
        return await self._pass(data, loss, config, backward=False)

    async def forward_backward(
        self, data: Sequence[Datum], loss: str, config: Mapping[str, Any] | None = None
    ) -> StepOutput:
        """Add the gradient of the summed loss to what has accumulated since the last `optim_step`.

        Raises: TrainingError if the data has no trainable token or the loss is not finite.
        """
        return await self._pass(data, loss, config, backward=True)

    async def optim_step(self, params: AdamParams) -> OptimOutput:
        """Apply the accumulated gradient and clear it.

        Raises: TrainingError if there is none, or it is not finite; the weights then stay as they were.
        """
        return await self.trainer.run(lambda: self._optim_step(params))

    async def save(self, name: str) -> Path:
        """Write adapter, optimiser and counters to `folder/name`, atomically."""
        counters = {"steps": self.steps, "published": self.published}
        return await self.trainer.run(
            lambda: save_adapter(self.trainer.folder / name, self.lora, self.optimizer, counters)
        )

    async def load(self, path: Path, *, optimizer: bool = True) -> None:
        """Take weights (and optimiser state) from a checkpoint of the same shape.

        The next `publish` serves them under the version number they had when they were saved.
        Raises: UsageError if the checkpoint is missing, damaged or of another shape.
        """

        def work() -> None:
            counters = load_adapter(path, self.lora, self.optimizer if optimizer else None)
            self.steps, self.published = counters["steps"], counters["published"] - 1

        await self.trainer.run(work)

    async def publish(self) -> PolicyVersion:
        """Snapshot the adapter as the next version; returns once it is being served."""
        snapshot, digest = await self.trainer.run(self._snapshot)
        self.published += 1
        version = PolicyVersion(self.name, self.published, digest)
        if self.on_publish is not None:
            await self.on_publish(version, snapshot)
        return version

    async def _pass(
        self, data: Sequence[Datum], loss: str, config: Mapping[str, Any] | None, *, backward: bool
    ) -> StepOutput:
        t = self.trainer
        return await t.run(
            lambda: run_pass(t.decoder, self.lora, t.config, data, loss, config or {}, backward=backward)
        )

    def _snapshot(self) -> tuple[Lora, str]:
        snapshot = self.lora.snapshot()
        return snapshot, snapshot.digest()

    def _optim_step(self, params: AdamParams) -> OptimOutput:
        tensors = list(self.lora.tensors.values())
        grads = [t.grad for t in tensors if t.grad is not None]
        if not grads:
            raise TrainingError("optim_step without a gradient: call forward_backward first")
        norm = torch.nn.utils.get_total_norm(grads)
        if not torch.isfinite(norm):
            self.optimizer.zero_grad(set_to_none=True)
            raise TrainingError(f"the gradient is not finite (norm {norm.item()}); it was dropped, the weights kept")
        if params.grad_clip is not None:
            torch.nn.utils.clip_grads_with_norm_(tensors, params.grad_clip, norm)
        for group in self.optimizer.param_groups:
            group.update(
                lr=params.lr, betas=(params.beta1, params.beta2), eps=params.eps, weight_decay=params.weight_decay
            )
        before = [t.detach().clone() for t in tensors]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steps += 1
        moved = torch.nn.utils.get_total_norm([t.detach() - b for t, b in zip(tensors, before, strict=True)])
        return OptimOutput(step=self.steps, grad_norm=norm.item(), update_norm=moved.item())
