"""Names for clusters that a reader recognises: what their tasks have in common, or how their rollouts went."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from sortie.core.group import TaskRecord
from sortie.core.trajectory import Trajectory

_WORD = re.compile(r"[^\W\d_]{3,}")
_MOST = 300
"""Texts read per cluster."""


def hint_names(members: Mapping[int, Sequence[TaskRecord]]) -> dict[int, str]:
    """Cluster -> its given features in words, `level 2`; else the words that its texts have and others have not."""
    words = {hint: _document_share(records) for hint, records in members.items()}
    overall: dict[str, float] = {}
    for shares in words.values():
        for word, share in shares.items():
            overall[word] = overall.get(word, 0.0) + share
    names = {}
    for hint, records in members.items():
        given = [record.features for record in records[:_MOST] if record.features is not None]
        names[hint] = _features_name(given) if given else _words_name(words[hint], overall, len(words))
    return _distinct(names)


def pattern_names(members: Mapping[int, Sequence[Trajectory]]) -> dict[int, str]:
    """Cluster -> turns, tools and ending that its rollouts share."""
    return _distinct({pattern: _behaviour(rollouts) for pattern, rollouts in members.items()})


def _features_name(given: Sequence[Mapping[str, float] | Sequence[float]]) -> str:
    parts: dict[str, list[float]] = {}
    for features in given:
        items = features.items() if isinstance(features, Mapping) else ((str(i), x) for i, x in enumerate(features))
        for name, value in items:
            parts.setdefault(name, []).append(float(value))
    shown = [
        f"{name} {min(values):g}" if min(values) == max(values) else f"{name} {min(values):g} to {max(values):g}"
        for name, values in sorted(parts.items(), key=lambda item: -len(item[1]))[:3]
    ]
    return ", ".join(shown) or "no features"


def _document_share(records: Sequence[TaskRecord]) -> dict[str, float]:
    """Share of the texts that hold each word."""
    read = records[:_MOST]
    counts = Counter(word for record in read for word in set(_WORD.findall(record.text.lower())))
    return {word: n / len(read) for word, n in counts.items()}


def _words_name(shares: Mapping[str, float], overall: Mapping[str, float], clusters: int) -> str:
    """Four words most telling: common here, and more so than in the average cluster."""
    telling = {word: share * (1.0 + share - overall[word] / clusters) for word, share in shares.items()}
    best = sorted(telling, key=lambda word: (-telling[word], word))[:4]
    return " ".join(best) or "no words"


def _behaviour(rollouts: Sequence[Trajectory]) -> str:
    n = len(rollouts)
    turns = sum(t.turns for t in rollouts) / n
    calls = Counter(call.name for t in rollouts for call in t.tools)
    failed = sum(call.error for t in rollouts for call in t.tools)
    stop, count = Counter(t.stop_reason.value for t in rollouts).most_common(1)[0]
    tools = " + ".join(name for name, used in calls.most_common(2) if used >= 0.25 * n) or "no tools"
    tokens = sum(t.sampled_tokens for t in rollouts) / n
    parts = [f"{turns:.0f} turn{'s' if round(turns) != 1 else ''}", f"{tokens:.0f} tokens", tools]
    if calls.total() and failed / calls.total() >= 0.25:
        parts.append(f"{failed / calls.total():.0%} tool errors")
    unread = sum(bool(t.parse_errors) for t in rollouts) / n
    if unread >= 0.25:
        parts.append(f"{unread:.0%} unreadable calls")
    ending = stop.replace("_", " ")
    parts.append(ending if count / n >= 0.995 else f"{ending} {count / n:.0%}")
    return ", ".join(parts)


def _distinct(names: Mapping[int, str]) -> dict[int, str]:
    """Equal names get numbers."""
    seen: Counter[str] = Counter()
    out = {}
    for number, name in names.items():
        seen[name] += 1
        out[number] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return out
