from __future__ import annotations

import pytest

from sortie.context.limits import Limits
from sortie.core.errors import UndeclaredResource
from sortie.core.messages import user
from sortie.core.trajectory import StopReason
from sortie.resources.lease import Lease, Leases
from sortie.resources.spec import ObjectSpec
from toy import END, toy_context


def spec(name: str) -> ObjectSpec[str]:
    return ObjectSpec(name=name, make=lambda: name)


def held(*specs: ObjectSpec[str]) -> Leases:
    return Leases([Lease(s, "me", s.name, started=True) for s in specs])


async def test_what_is_held_is_handed_out_by_spec_or_by_type() -> None:
    database, cache = spec("database"), spec("cache")
    ctx = toy_context(leases=held(database, cache))
    assert ctx.lease(cache) == "cache"
    assert ctx.lease(database) == "database"
    assert toy_context(leases=held(cache)).lease(ObjectSpec) == "cache"


async def test_an_undeclared_resource_names_the_declaration_to_add() -> None:
    with pytest.raises(UndeclaredResource, match=r"nothing declares .*queue.*held: cache.*@tool\(needs=\.\.\.\)"):
        toy_context(leases=held(spec("cache"))).lease(spec("queue"))


async def test_two_held_specs_of_one_type_are_never_mixed_up() -> None:
    ctx = toy_context(leases=held(spec("a"), spec("b")))
    with pytest.raises(UndeclaredResource, match="2 specs of type ObjectSpec are held; lease one by its spec"):
        ctx.lease(ObjectSpec)


async def test_a_returned_lease_is_not_handed_out() -> None:
    cache = spec("cache")
    leases = held(cache)
    for lease in leases:
        lease.returned = True
    with pytest.raises(UndeclaredResource, match="was returned"):
        toy_context(leases=leases).lease(cache)


async def test_the_first_finish_stands() -> None:
    """Pain B1: nothing overwrites an end that was reached."""
    ctx = toy_context()
    ctx.finish("42", StopReason.ENV_DONE)
    ctx.finish("43")
    assert (ctx.trajectory.answer, ctx.trajectory.stop_reason) == ("42", StopReason.ENV_DONE)


async def test_another_thread_is_another_row_of_the_same_trajectory() -> None:
    ctx = toy_context([[65, END], [66, END], [67, END]])
    await ctx.sample([user("a")])
    critic = ctx.thread("critic")
    await critic.sample([user("judge this")])
    await ctx.sample([user("b")])
    other, main = ctx.trajectory.rows()  # in order of their last turn
    assert sum(main.mask) == 4
    assert sum(other.mask) == 2
    assert [node.agent for node in ctx.trajectory.nodes if node.kind == "sampled"] == ["main", "critic", "main"]
    sessions = [request.session for request in ctx.sampling.client.requests]  # type: ignore[attr-defined]
    assert sessions == [ctx.rollout_id, f"{ctx.rollout_id}/critic#0", ctx.rollout_id]


async def test_remaining_time_is_never_negative() -> None:
    ctx = toy_context(limits=Limits(seconds=100))
    assert 99 < ctx.remaining_s <= 100
    ctx.deadline = 0.0
    assert ctx.remaining_s == 0.0
