from __future__ import annotations

from pathlib import Path

import pytest
import torch
from test_passes import CLIP, policy_rows

from sortie.core.errors import TrainingError, UsageError
from sortie.core.policy import LoraConfig, PolicyVersion
from sortie.models.lora import Lora
from sortie.training.client import AdamParams
from sortie.training.local import LocalTrainer, LocalTrainingClient
from tiny import tiny_decoder

ADAM = AdamParams(lr=1e-2)


@pytest.fixture
def client(tmp_path: Path):
    trainer = LocalTrainer(tiny_decoder(), folder=tmp_path)
    yield trainer.create_adapter(LoraConfig(rank=4))
    trainer.close()


def weights(client: LocalTrainingClient) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone() for name, t in client.lora.tensors.items()}


async def test_a_step_moves_the_weights_and_lowers_the_loss(client: LocalTrainingClient) -> None:
    data = policy_rows()
    first = await client.forward_backward(data, "ppo", CLIP)
    out = await client.optim_step(ADAM)
    assert out.update_norm > 0
    assert (await client.forward(data, "ppo", CLIP)).loss < first.loss


async def test_gradients_accumulate_until_the_optimiser_steps(client: LocalTrainingClient) -> None:
    """Pain I11: two halves give the gradient of the whole."""
    data = policy_rows()
    await client.forward_backward(data, "ppo", CLIP)
    whole = {n: t.grad.clone() for n, t in client.lora.tensors.items()}
    client.optimizer.zero_grad()
    for half in (data[:3], data[3:]):
        await client.forward_backward(half, "ppo", CLIP)
    for name, tensor in client.lora.tensors.items():
        torch.testing.assert_close(tensor.grad, whole[name], atol=1e-6, rtol=1e-4)


async def test_calls_take_effect_in_the_order_they_were_made(client: LocalTrainingClient) -> None:
    import asyncio

    backward = asyncio.create_task(client.forward_backward(policy_rows(), "ppo", CLIP))
    step = asyncio.create_task(client.optim_step(ADAM))
    published = asyncio.create_task(client.publish())
    await asyncio.gather(backward, step, published)
    assert client.lora.snapshot().digest() == published.result().digest


async def test_without_a_gradient_nothing_moves(client: LocalTrainingClient) -> None:
    """Pain F1: neither momentum nor weight decay moves the weights of a skipped step."""
    await client.forward_backward(policy_rows(), "ppo", CLIP)
    await client.optim_step(ADAM)
    before = weights(client)
    with pytest.raises(TrainingError, match="without a gradient"):
        await client.optim_step(ADAM)
    assert all(torch.equal(before[n], t) for n, t in weights(client).items())


async def test_a_gradient_that_is_not_finite_is_dropped(client: LocalTrainingClient) -> None:
    await client.forward_backward(policy_rows(), "ppo", CLIP)
    next(iter(client.lora.tensors.values())).grad[0, 0] = float("nan")
    before = weights(client)
    with pytest.raises(TrainingError, match="not finite"):
        await client.optim_step(ADAM)
    assert all(torch.equal(before[n], t) for n, t in weights(client).items())


async def test_a_published_version_never_changes_again(tmp_path: Path) -> None:
    """Pain I3: what was published is a copy, not a view of the weights in training."""
    served: list[tuple[PolicyVersion, Lora]] = []

    async def serve(version: PolicyVersion, lora: Lora) -> None:
        served.append((version, lora))

    trainer = LocalTrainer(tiny_decoder(), folder=tmp_path)
    client = trainer.create_adapter(LoraConfig(rank=4), on_publish=serve)
    first = await client.publish()
    await client.forward_backward(policy_rows(), "ppo", CLIP)
    await client.optim_step(ADAM)
    second = await client.publish()
    trainer.close()
    assert (first.number, second.number) == (0, 1)
    assert first.digest != second.digest
    assert [lora.digest() for _, lora in served] == [first.digest, second.digest]


async def test_a_checkpoint_restores_weights_optimiser_and_counters(tmp_path: Path) -> None:
    """The step after loading equals the step without the detour, momentum included."""
    data = policy_rows()
    trainer = LocalTrainer(tiny_decoder(), folder=tmp_path)
    straight, detour = (trainer.create_adapter(LoraConfig(rank=4)) for _ in range(2))
    await straight.forward_backward(data, "ppo", CLIP)
    await straight.optim_step(ADAM)
    path = await straight.save("step-1")
    await detour.load(path)
    for client in (straight, detour):
        await client.forward_backward(data, "ppo", CLIP)
        await client.optim_step(ADAM)
    trainer.close()
    assert straight.lora.snapshot().digest() == detour.lora.snapshot().digest()
    assert detour.steps == 2


async def test_two_adapters_train_apart(tmp_path: Path) -> None:
    """Each adapter's gradients and optimiser are its own; ranks may differ."""
    trainer = LocalTrainer(tiny_decoder(), folder=tmp_path)
    one, other = trainer.create_adapter(LoraConfig(rank=4)), trainer.create_adapter(LoraConfig(rank=2))
    before = weights(other)
    await one.forward_backward(policy_rows(), "ppo", CLIP)
    await one.optim_step(ADAM)
    trainer.close()
    assert all(torch.equal(before[n], t) for n, t in weights(other).items())


async def test_a_damaged_checkpoint_is_refused(client: LocalTrainingClient) -> None:
    """Pain J6: a torn or altered checkpoint is named, never half-loaded."""
    path = await client.save("c")
    before = weights(client)
    content = bytearray((path / "adapter.safetensors").read_bytes())
    content[-1] ^= 0xFF
    (path / "adapter.safetensors").write_bytes(bytes(content))
    with pytest.raises(UsageError, match="damaged"):
        await client.load(path)
    assert all(torch.equal(before[n], t) for n, t in weights(client).items())


async def test_a_full_disk_leaves_the_old_checkpoint(
    client: LocalTrainingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pain J6."""
    path = await client.save("c")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(UsageError, match="No space left on device"):
        await client.save("c")
    await client.load(path)
    assert [p.name for p in path.parent.iterdir()] == ["c"]
