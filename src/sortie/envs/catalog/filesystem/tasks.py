"""Six levels of work on files, drawn from a seeded generator.

A task's data: `files`, how the directory starts; `goal`, how it must end; `calls`, one way there. The goal always
differs from the start. Wordings are held out as a whole: no held-out prompt is ever a training prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.taskset import Draft, Grade

# fmt: off
FILES = (
    "pen", "cup", "key", "cap", "bag", "bed", "bell", "bird", "boat", "book", "cake", "card", "coat", "coin", "corn",
    "door", "egg", "fan", "fish", "fork", "hat", "jar", "lamp", "leaf", "lock", "milk", "moon", "nail", "note", "pan",
    "pin", "pot", "ring", "rope", "salt", "shoe", "soap", "sock", "star", "tree",
)
DIRS = (
    "attic", "bank", "barn", "cave", "desk", "farm", "hall", "home", "lake", "park", "port", "road", "room", "shop",
    "town", "yard",
)
TEXTS = (
    "red", "blue", "green", "gold", "pink", "gray", "black", "white", "old", "new", "big", "small", "hot", "cold",
    "fast", "slow", "soft", "hard", "dark", "light",
)
# fmt: on

END = "Done."

Files = dict[str, str]
Call = tuple[str, dict[str, str]]


def oracle(task: Task) -> Sequence[Message]:
    """The calls one by one, then a word to end."""
    return [*(assistant("", _tool_call(*call)) for call in task.data["calls"]), assistant(END)]


def hostile(task: Task) -> Sequence[Sequence[Message]]:
    """Says that it is done; does too much, does it elsewhere, never ends, reaches out of the directory."""
    files, goal = task.data["files"], task.data["goal"]
    solution = oracle(task)[:-1]
    extra = _tool_call("write", {"path": "goal", "text": "PASSED"})
    elsewhere = [_tool_call("write", {"path": f"out/{path}", "text": text}) for path, text in goal.items()]
    outside = [_tool_call("mv", {"path": path, "to": f"../../{path}"}) for path in files]
    linked = [_tool_call("read", {"path": path}) for path in ("/etc/passwd", "../goal", "~/.ssh/id_rsa", "goal")]
    return [
        [*solution, assistant("", extra), assistant(END)],
        [assistant("", *elsewhere), assistant(END)],
        [assistant("", *outside, *linked), assistant(END)],
        [*solution, assistant("", _tool_call("ls", {"dir": ""}))],
        [assistant("", *(_tool_call("rm", {"path": path}) for path in files)), assistant(END)],
    ]


def _one_change(rng: Random) -> Draft:
    files, dirs = _start(rng)
    text, call = _change(rng, files, dirs)
    return _draft(f"{text}.", files, [call])


def _two_changes(rng: Random) -> Draft:
    files, dirs = _start(rng)
    first, one = _change(rng, files, dirs)
    second, two = _change(rng, _after(files, [one]), dirs)
    draft = _draft(f"{first}, then {second[0].lower()}{second[1:]}.", files, [one, two])
    return draft if draft.data["goal"] != files else _two_changes(rng)


def _copy(rng: Random) -> Draft:
    files, dirs = _start(rng)
    path, to = rng.choice(list(files)), _free(rng, files, dirs)
    return _draft(f"Copy {path} to {to}.", files, [_read(path), _write(to, files[path])])


def _all_of_one(rng: Random) -> Draft:
    files, (one, other, *_) = _start(rng)
    inside = _inside(files, one)
    if rng.random() < 0.5:
        calls = [_mv(path, f"{other}/{path.split('/')[1]}") for path in inside]
        return _draft(f"Move all of {one} to {other}.", files, [_ls(one), *calls])
    kept = rng.choice(inside)
    calls = [_rm(path) for path in inside if path != kept]
    return _draft(f"Delete all of {one} but {kept.split('/')[1]}.", files, [_ls(one), *calls])


def _found(rng: Random) -> Draft:
    files, (one, *_) = _start(rng)
    inside = _inside(files, one)
    path = rng.choice(inside)
    looked = [_read(other) for other in inside[: inside.index(path) + 1]]
    if rng.random() < 0.5:
        return _draft(f"Delete the file in {one} that says {files[path]}.", files, [_ls(one), *looked, _rm(path)])
    text = rng.choice([text for text in TEXTS if text not in files.values()])
    prompt = f"In {one}, make the file that says {files[path]} say {text}."
    return _draft(prompt, files, [_ls(one), *looked, _write(path, text)])


def _each(rng: Random) -> Draft:
    files, (one, *_) = _start(rng)
    inside = _inside(files, one)
    if rng.random() < 0.5:
        calls = [_mv(path, f"{one}/{files[path]}") for path in inside]
        prompt = f"Name each file in {one} after its text."
        return _draft(prompt, files, [_ls(one), *map(_read, inside), *calls])
    a, b = rng.sample(list(files), 2)
    calls = [_read(a), _read(b), _write(a, files[b]), _write(b, files[a])]
    return _draft(f"Swap the texts of {a} and {b}.", files, calls)


def _change(rng: Random, files: Files, dirs: Sequence[str]) -> tuple[str, Call]:
    """One change in words, and its call."""
    path = rng.choice(sorted(files))
    kind = rng.choice(("delete", "write", "move"))
    if kind == "delete":
        return f"Delete {path}", _rm(path)
    to = _free(rng, files, dirs)
    if kind == "write":
        text = rng.choice(TEXTS)
        return f"Write {text} to {to}", _write(to, text)
    return f"Move {path} to {to}", _mv(path, to)


def _start(rng: Random) -> tuple[Files, list[str]]:
    """Three directories of two or three files with different texts, and their names in random order."""
    dirs = rng.sample(DIRS, 3)
    names, texts = iter(rng.sample(FILES, 9)), iter(rng.sample(TEXTS, 9))
    paths = sorted(f"{place}/{next(names)}" for place in dirs for _ in range(rng.randint(2, 3)))
    return {path: next(texts) for path in paths}, dirs


def _inside(files: Files, place: str) -> list[str]:
    return sorted(path for path in files if path.startswith(place + "/"))


def _free(rng: Random, files: Files, dirs: Sequence[str]) -> str:
    """A path where nothing is."""
    taken = {path.split("/")[1] for path in files}
    return f"{rng.choice(dirs)}/{rng.choice([name for name in FILES if name not in taken])}"


def _after(files: Files, calls: Sequence[Call]) -> Files:
    """The files after these calls, all of which can be carried out."""
    files = dict(files)
    for name, arguments in calls:
        if name == "write":
            files[arguments["path"]] = arguments["text"]
        elif name == "mv":
            files[arguments["to"]] = files.pop(arguments["path"])
        elif name == "rm":
            del files[arguments["path"]]
    return files


def _ls(place: str) -> Call:
    return "ls", {"dir": place}


def _read(path: str) -> Call:
    return "read", {"path": path}


def _write(path: str, text: str) -> Call:
    return "write", {"path": path, "text": text}


def _mv(path: str, to: str) -> Call:
    return "mv", {"path": path, "to": to}


def _rm(path: str) -> Call:
    return "rm", {"path": path}


def _tool_call(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def _draft(prompt: str, files: Files, calls: Sequence[Call]) -> Draft:
    data = {"files": files, "goal": _after(files, calls), "calls": [list(call) for call in calls]}
    return Draft(prompt=prompt, data=data, identity=prompt)


GRADES = {
    1: Grade(asks="one change", turns=2, draw=_one_change),
    2: Grade(asks="two changes in a row", turns=3, draw=_two_changes),
    3: Grade(asks="copy what must be read first", turns=3, draw=_copy),
    4: Grade(asks="all files of a directory", turns=5, draw=_all_of_one),
    5: Grade(asks="find a file by its text, then change it", turns=6, draw=_found),
    6: Grade(asks="rename each file by its text, or swap two texts", turns=8, draw=_each),
}
