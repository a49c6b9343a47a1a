"""A Python program that is given its code piece by piece, all of it in one namespace.

Executed as a file, in the sandbox. A piece sees what earlier ones defined, as the lines of one file do: functions find
themselves, each other and what was imported.
"""

from __future__ import annotations

import builtins
import contextlib
import linecache
import os
import struct
import sys
import traceback
import types
from typing import Any

CODE_FD, DONE_FD = 3, 4


def main() -> None:
    """Execute one piece and leave as it does, or with `keep` on the command line one after the other."""
    sys.path.insert(0, "")
    sys.argv[1:], keep = [], sys.argv[1:] == ["keep"]
    module = types.ModuleType("__main__", None)
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    number = 0
    while (code := _receive()) is not None:
        number += 1
        status = execute(code, module.__dict__, f"<code {number}>" if keep else "<code>")
        if not keep:
            sys.exit(status)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError, OSError):  # the code may have closed it
                stream.flush()
        os.write(DONE_FD, struct.pack(">i", status))


def execute(code: str, namespace: dict[str, Any], name: str) -> int:
    """Run `code` as a main program does, tracebacks included; the exit status it asks for."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        exec(compile(code, name, "exec", dont_inherit=True), namespace)
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return 1
    except BaseException as error:  # noqa: BLE001  # whatever the code raises is its own affair: shown, not handled
        below = error.__traceback__.tb_next if error.__traceback__ is not None else None
        traceback.print_exception(type(error), error, below)
        return 1
    return 0


def _receive() -> str | None:
    head = _exactly(4)
    if head is None:
        return None
    body = _exactly(struct.unpack(">I", head)[0])
    return None if body is None else body.decode()


def _exactly(size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        more = os.read(CODE_FD, min(1 << 16, size - len(data)))
        if not more:
            return None
        data += more
    return data


if __name__ == "__main__":
    main()
