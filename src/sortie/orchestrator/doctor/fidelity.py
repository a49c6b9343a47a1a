"""Does this model keep its tokens, see its tools, and give engine and trainer the same numbers?"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from sortie.core.errors import PrefixBreak, SortieError
from sortie.core.messages import Message, ToolCall, assistant, system, tool_result, user
from sortie.core.policy import LoraConfig
from sortie.core.tool_schema import ToolSchema
from sortie.core.trajectory import NodeKind, Row
from sortie.inference.renderers.base import Renderer
from sortie.orchestrator.checks import PROBE_TOLERANCE, RATIO_TOLERANCE
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.doctor.check import Check
from sortie.orchestrator.probe import Probe, probe
from sortie.orchestrator.session import LocalSession, open_local

LOOKUP = ToolSchema(
    name="look_up",
    description="Look a word up.",
    parameters={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
_KV_MB = 256
"""Enough for the few hundred tokens that pass, and quickly there."""
_DRAWN = 8
"""Tokens that engine, trainer and plain pass are compared on."""
_CALL = ToolCall(name=LOOKUP.name, arguments={"word": "sortie"})
_OPENING = [system("You help with words."), user("What is a sortie?")]
_ANSWER = [tool_result("an attack made by besieged troops", LOOKUP.name)]


async def fidelity_checks(config: RunConfig) -> list[Check]:
    """Checks of the model as `config` would load it; what keeps it from loading is one failed check."""
    try:
        async with open_local(
            config.model,
            dtype=config.dtype,
            device=config.device,
            threads=config.threads,
            renderer=config.renderer,
            engine=config.engine.model_copy(update={"kv_memory_mb": min(config.engine.kv_memory_mb, _KV_MB)}),
        ) as session:
            return [*renderer_checks(session.renderer), await _engine(session, config), await _trainer(session, config)]
    except SortieError as error:
        finding = f"{config.model} cannot be used: {error}"
        return [Check(name="model", status="fail", finding=finding, remedy="see `sortie model list`")]


def renderer_checks(renderer: Renderer, tools: Sequence[ToolSchema] = (LOOKUP,)) -> list[Check]:
    """Whether a conversation with a tool call can be grown token by token, and whether the model is told its tools."""
    return [_tools_seen(renderer, tools), _calls_read(renderer), _incremental(renderer, tools)]


def _tools_seen(renderer: Renderer, tools: Sequence[ToolSchema]) -> Check:
    name = "tools in the prompt"
    try:
        text = renderer.decode(renderer.render(_OPENING, tools))
    except SortieError as error:
        return Check(name=name, status="fail", finding=str(error), remedy="set renderer = 'smollm' or 'qwen'")
    wanted = [tool.name for tool in tools] + [key for tool in tools for key in tool.parameters["properties"]]
    missing = [word for word in wanted if word not in text]
    if missing:
        finding = f"the chat template leaves out {missing[0]!r}, so the model never learns of its tools"
        return Check(name=name, status="fail", finding=finding, remedy="set renderer = 'smollm' or 'qwen'")
    return Check(name=name, status="ok", finding="names and arguments of the tools are there")


def _calls_read(renderer: Renderer) -> Check:
    name = "tool calls"
    turn = assistant("", _CALL)
    read = renderer.parse(renderer.spell(turn)).tool_calls
    if [(c.name, dict(c.arguments), c.error) for c in read] == [(_CALL.name, dict(_CALL.arguments), None)]:
        return Check(name=name, status="ok", finding="a call that is spelled is read back as it was")
    finding = f"a call spelled as {renderer.decode(renderer.spell(turn))!r} is read back as {list(read)!r}"
    return Check(name=name, status="fail", finding=finding, remedy="choose another renderer")


def _incremental(renderer: Renderer, tools: Sequence[ToolSchema]) -> Check:
    name = "growing prompt"
    turn: Message = assistant("", _CALL)
    prompt, sampled = renderer.render(_OPENING, tools), renderer.spell(turn)
    history = [*_OPENING, renderer.parse(sampled)]
    remedy = "each turn then starts a row of its own, which trains rightly but slowly; another renderer may not need it"
    try:
        grown = [*prompt, *sampled, *renderer.extend(history, sampled, _ANSWER, tools)]
    except PrefixBreak as broken:
        return Check(name=name, status="warn", finding=f"the template rewrites history: {broken}", remedy=remedy)
    whole = renderer.render([*history, *_ANSWER], tools)
    if grown == whole:
        finding = f"turn by turn and at once give the same {len(whole)} tokens on a conversation with a tool call"
        return Check(name=name, status="ok", finding=finding)
    same = next((i for i, (a, b) in enumerate(zip(grown, whole, strict=False)) if a != b), min(len(grown), len(whole)))
    finding = (
        f"turn by turn and at once differ from token {same}: "
        f"{renderer.decode(grown[same : same + 12])!r} against {renderer.decode(whole[same : same + 12])!r}"
    )
    if renderer.decode(grown) == renderer.decode(whole):
        return Check(name=name, status="warn", finding=f"{finding} (the same text)", remedy="choose another renderer")
    return Check(name=name, status="fail", finding=finding, remedy="choose another renderer")


def _row(found: Probe) -> Row:
    drawn, asked = len(found.token_ids), len(found.prompt)
    prompt, sampled = list[NodeKind](["prompt"]) * asked, list[NodeKind](["sampled"]) * drawn
    return Row(
        token_ids=[*found.prompt, *found.token_ids],
        mask=[0] * asked + [1] * drawn,
        logprobs=[0.0] * asked + list(found.served),
        kinds=prompt + sampled,
    )


async def _engine(session: LocalSession, config: RunConfig) -> Check:
    prompt = session.renderer.render(_OPENING)
    found = await probe(session, None, None, prompt=prompt, tokens=_DRAWN, temperature=config.rollouts.temperature)
    finding = f"log-probabilities of {len(found.served)} tokens are within {found.gap:.1g} of a plain pass"
    if found.gap <= PROBE_TOLERANCE[config.dtype]:
        return Check(name="engine", status="ok", finding=finding)
    remedy = "the engine computes something else than the model: please report it with this line"
    return Check(name="engine", status="fail", finding=finding, remedy=remedy)


async def _trainer(session: LocalSession, config: RunConfig) -> Check:
    """One supervised step makes an adapter that changes the model; what the engine then draws, the trainer judges."""
    from sortie.training.batching import cross_entropy_datum, policy_datum
    from sortie.training.client import AdamParams
    from sortie.training.local import LocalTrainer

    prompt = session.renderer.render(_OPENING)
    temperature = config.rollouts.temperature
    with tempfile.TemporaryDirectory(prefix="sortie-doctor-") as folder:
        trainer = LocalTrainer(session.decoder, config.trainer, folder=Path(folder))
        try:
            client = trainer.create_adapter(LoraConfig(rank=4), on_publish=session.engine.publish)
            await client.forward_backward([cross_entropy_datum(prompt, [1] * len(prompt), 1e-2)], "cross_entropy")
            await client.optim_step(AdamParams(lr=1e-3))
            policy = await client.publish()
            found = await probe(session, policy, client.lora, prompt=prompt, tokens=_DRAWN, temperature=temperature)
            datum = policy_datum(_row(found), 1.0, 1.0)
            passed = await client.forward([datum], "importance_sampling", {"temperature": temperature})
        finally:
            trainer.close()
    ratio = passed.metrics["ratio"]
    finding = (
        f"under a trained adapter the importance ratio is {ratio:.4f}, "
        f"and the engine is within {found.gap:.1g} of a plain pass"
    )
    sound = abs(ratio - 1) <= RATIO_TOLERANCE[config.dtype] and found.gap <= PROBE_TOLERANCE[config.dtype]
    remedy = "" if sound else "trainer and engine disagree about the adapter: please report it with this line"
    return Check(name="trainer", status="ok" if sound else "fail", finding=finding, remedy=remedy)
