"""A world: pairs with environment, pattern and difficulty, and what of that a scheduler may see.

Every quantity has a random stream of its own, keyed by the seed and its name, so that worlds of one seed differ only in
what their specs differ in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.scheduling.specs import SPECS, Spec
from benchmarks.scheduling.surface import environments_of, patterns_of, text_of
from sortie.scheduling import EnvironmentRecord, TaskRecord

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GROUP_SIZE = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """One spec made concrete by one seed; a learner changes nothing in it. Arrays have one entry per pair."""

    spec: Spec
    seed: int
    environment: Ints
    domain: Ints
    """Whose effect and skill its environment has; the environment itself unless several share a domain."""
    pattern: Ints
    environment_effect: Floats
    """Per domain, in logits of difficulty."""
    pattern_effect: Floats
    """Per pattern, in logits of difficulty."""
    own: Floats
    """What is each pair's own, and the shift common to all."""
    checks: Ints
    """Parts of the reward."""
    cost: Floats
    """Of one rollout."""
    records: tuple[TaskRecord, ...]
    environments: tuple[EnvironmentRecord, ...]
    profiles: tuple[dict[str, float], ...]
    """Mean rollout features per pattern."""

    def stream(self, name: str, *counters: int) -> np.random.Generator:
        """Random numbers for one purpose of this seed."""
        return np.random.default_rng([self.seed, crc32(name.encode()), *counters])


@lru_cache(maxsize=8)
def make(name: str, seed: int) -> World:
    """The world called `name`.

    Raises: KeyError for a name that is not in SPECS.
    """
    return build_world(SPECS[name], seed)


def build_world(spec: Spec, seed: int) -> World:
    """Draw effects and pairs; shift difficulties until the wanted share of groups is informative."""

    def stream(name: str) -> np.random.Generator:
        return np.random.default_rng([seed, crc32(name.encode())])

    environment = _environments(spec)
    n = len(environment)
    pattern = stream("patterns").permutation(np.arange(n) % spec.patterns)
    checks = np.array(spec.checks)[np.arange(spec.environments) % len(spec.checks)]
    draws = {name: stream(name).normal(size=size) for name, size in _sizes(spec).items()}
    effects = {name: spec.scale * spec.effect_sd * draws[name] for name in ("environment", "pattern")}
    own = spec.noise_sd * stream("own").normal(size=n)
    domain = environment // spec.per_domain
    level = logits(spec, -effects["environment"][domain], -effects["pattern"][pattern], own)
    own += 0.0 if spec.informative is None else _shift(level, checks[environment], spec.informative)
    price = spec.dearest ** stream("cost").permutation(np.linspace(0.0, 1.0, spec.environments))
    cost = price[environment] / price[environment].mean()
    shown = np.where(stream("told").random(n) < spec.told, pattern, stream("other").integers(spec.patterns, size=n))
    surfaces = patterns_of(spec.patterns, stream("surface"))
    records = tuple(
        TaskRecord(key=f"env{e:02d}/{i:05d}", environment=f"env{e:02d}", text=text_of(surfaces[q], i), cost=float(c))
        for i, (e, q, c) in enumerate(zip(environment.tolist(), shown.tolist(), cost.tolist(), strict=True))
    )
    return World(
        spec=spec,
        seed=seed,
        environment=environment,
        domain=domain,
        pattern=pattern,
        environment_effect=effects["environment"],
        pattern_effect=effects["pattern"],
        own=own,
        checks=checks[environment],
        cost=cost,
        records=records,
        environments=environments_of(spec.environments, spec.per_domain, stream("descriptions")),
        profiles=tuple(surface.profile for surface in surfaces),
    )


def logits(spec: Spec, environment_margin: Floats, pattern_margin: Floats, own: Floats) -> Floats:
    """Logit of success of each pair: margins are skill minus difficulty effect."""
    if spec.combine == "weaker":
        return 2.0 * np.minimum(environment_margin, pattern_margin) - own
    return environment_margin + pattern_margin - own


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x))."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))


def informative_chance(p: Floats, checks: Ints, n: int = GROUP_SIZE) -> Floats:
    """Chance that the rewards of a group of n are not all equal: 1 - sum_k P(k of the checks pass)^n."""
    out = np.zeros(len(p))
    for m in np.unique(checks).tolist():
        at = checks == m
        k = np.arange(m + 1)
        choose = np.array([float(np.prod([(m - j) / (j + 1) for j in range(i)])) for i in k])
        mass = choose * p[at, None] ** k * (1.0 - p[at, None]) ** (m - k)
        out[at] = 1.0 - (mass**n).sum(axis=1)
    return out


def _environments(spec: Spec) -> Ints:
    """Environment of each pair."""
    if spec.smallest is None or spec.largest is None:
        return np.sort(np.arange(spec.pairs) % spec.environments)
    sizes = np.geomspace(spec.smallest, spec.largest, spec.environments).round().astype(np.int64)
    return np.repeat(np.arange(spec.environments), sizes)


def _sizes(spec: Spec) -> dict[str, int]:
    return {"environment": spec.environments // spec.per_domain, "pattern": spec.patterns}


def _shift(level: Floats, checks: Ints, wanted: float) -> float:
    """How much harder all pairs must be for the mean informative chance to be `wanted`, by bisection.

    Most groups are informative near a mean logit of 0; beyond it the share falls with every shift upwards.
    """
    low, high = float(level.mean()), float(level.mean()) + 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        share = informative_chance(sigmoid(level - middle), checks).mean()
        low, high = (middle, high) if share > wanted else (low, middle)
    return 0.5 * (low + high)
