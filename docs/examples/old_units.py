"""An environment of one's own: lengths in units that nobody uses any more."""

import sortie

METRES = {"cubits": 0.4572, "furlongs": 201.168, "smoots": 1.7018}


@sortie.tool
def to_metres(amount: float, unit: str) -> str:
    """Convert cubits, furlongs or smoots to metres."""
    return f"{amount * METRES[unit]:g}"


@sortie.reward
def correct(answer: str | None, metres: str) -> bool:
    """Every key of a task is there to be asked for by name."""
    return metres in (answer or "")


def tasks():  # or tasks="old_units.jsonl", one such object a line
    for unit, size in METRES.items():
        for n in range(2, 100):
            yield {"prompt": f"How many metres are {n} {unit}?", "metres": f"{n * size:g}"}


env = sortie.Env("old-units", tasks=tasks, tools=[to_metres], rewards=[correct])

if __name__ == "__main__":
    sortie.train(env, model="smollm2-135m", steps=20)
