"""A learner without an LLM: success falls with the level and rises with the reward variance it was shown."""

from __future__ import annotations

import numpy as np

from sortie.scheduling import GroupResult, TaskRecord, build


class Learner:
    """Two environments of three levels, 200 tasks each, as in the first real run: most start far beyond reach.

    logit of success = base of the cell + N(0, 0.7) per task + skill; a group's reward variance (of at most 1/4) adds,
    times `rate`, to the skill of its environment, its level everywhere, and its cell.
    """

    BASE = ((-1.5, -3.5, -7.0), (-2.5, -4.5, -8.0))
    GAIN = (0.5, 0.3, 0.5)

    def __init__(self, seed: int, *, levels: bool = True, graded: bool = False, rate: float = 0.5) -> None:
        self.rng = np.random.default_rng(seed)
        self.graded, self.rate = graded, rate
        self.skill: dict[str, float] = {}
        self.place: dict[str, tuple[int, int]] = {}
        self.difficulty: dict[str, float] = {}
        self.records = []
        for env in range(2):
            for level in range(3):
                for i in range(200):
                    key = f"env{env}/{level}-{i}"
                    self.place[key] = env, level
                    self.difficulty[key] = self.BASE[env][level] + 0.7 * float(self.rng.normal())
                    features = {"level": float(level)} if levels else None
                    text = f"Add {'and add again ' * level}{i}."
                    self.records.append(TaskRecord(key=key, environment=f"env{env}", text=text, features=features))

    def success(self, key: str) -> float:
        env, level = self.place[key]
        skill = sum(self.skill.get(part, 0.0) for part in (f"e{env}", f"l{level}", f"{env}{level}"))
        return float(1 / (1 + np.exp(-(self.difficulty[key] + skill))))

    def rewards(self, key: str, n: int) -> np.ndarray:
        p = self.success(key)
        if self.graded:  # mean p, a third of the binary variance
            return self.rng.beta(2 * p + 1e-6, 2 * (1 - p) + 1e-6, size=n)
        return (self.rng.random(n) < p).astype(float)

    def run(
        self, name: str, seed: int, *, steps: int = 16, groups: int = 6, n: int = 8, **options: object
    ) -> list[float]:
        """Realised reward variance of every group, in order."""
        by_value = {"sampled_share": 0.0} if name == "envsched" else {}
        scheduler = build(name, self.records, seed=seed, **{**by_value, **options})
        shown = []
        for version in range(steps):
            results = []
            for a in scheduler.select(groups, n):
                rewards = self.rewards(a.key, a.rollouts)
                results.append(
                    GroupResult(key=a.key, assignment=a.id, rewards=tuple(rewards.tolist()), version=version)
                )
                shown.append(float(rewards.var()))
            scheduler.observe(results)
            for result, variance in zip(results, shown[-groups:], strict=True):
                env, level = self.place[result.key]
                for part, gain in zip((f"e{env}", f"l{level}", f"{env}{level}"), self.GAIN, strict=True):
                    self.skill[part] = self.skill.get(part, 0.0) + self.rate * gain * variance
        self.predicted = scheduler.metrics().get("predicted_informative_share", 0.0)
        return shown
