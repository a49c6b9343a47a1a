"""What can be done to files, wherever they are kept.

A directory is there for as long as a file is in it. A call that is refused changes nothing. Paths are relative and
checked before any place sees them. Calls of one turn are carried out one after the other, in their order.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping

from sortie.core.errors import ToolError

MOST_FILES = 100
LONGEST_TEXT = 10_000
"""Characters of one file."""

_PATH = re.compile(r"\w[\w.-]{0,49}(/\w[\w.-]{0,49}){0,5}", re.ASCII)


class Tree(ABC):
    """Files by path. A place says how to get, put and drop one."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def entries(self, directory: str) -> list[str]:
        """Names in a directory, those of directories with a slash behind them; "" is the top.

        Raises: ToolError if there is no such directory.
        """
        top = directory.strip("/.") == ""
        prefix = "" if top else _checked(directory.rstrip("/")) + "/"
        async with self._turn:
            inside = [path.removeprefix(prefix) for path in await self._paths() if path.startswith(prefix)]
        if not inside and not top:
            raise ToolError(f"no directory {directory!r}")
        return sorted({name + slash for name, slash, _ in (path.partition("/") for path in inside)})

    async def read(self, path: str) -> str:
        """Raises: ToolError if there is no such file."""
        async with self._turn:
            return await self._text(_checked(path))

    async def write(self, path: str, text: str) -> None:
        """Make or replace a file. Raises: ToolError if that cannot be."""
        async with self._turn:
            await self._write(_checked(path), text)

    async def move(self, path: str, to: str) -> None:
        """Raises: ToolError if the one is not there or the other is."""
        _checked(path), _checked(to)
        async with self._turn:
            text = await self._text(path)
            if to in await self._paths():
                raise ToolError(f"{to} is there already")
            await self._write(to, text)
            await self._drop(path)

    async def delete(self, path: str) -> None:
        """Raises: ToolError if there is no such file."""
        async with self._turn:
            await self._text(_checked(path))
            await self._drop(path)

    async def snapshot(self) -> dict[str, str]:
        """Every file with its text."""
        async with self._turn:
            return {path: await self._get(path) for path in await self._paths()}

    async def _text(self, path: str) -> str:
        paths = await self._paths()
        if path not in paths:
            raise ToolError(f"no file {path!r}" + ("; it is a directory" if _directory(path, paths) else ""))
        return await self._get(path)

    async def _write(self, path: str, text: str) -> None:
        paths = await self._paths()
        above = next((other for other in paths if path.startswith(other + "/")), None)
        if above is not None:
            raise ToolError(f"{above} is a file, not a directory")
        if _directory(path, paths):
            raise ToolError(f"{path} is a directory")
        if len(text) > LONGEST_TEXT:
            raise ToolError(f"a file holds at most {LONGEST_TEXT} characters")
        if path not in paths and len(paths) >= MOST_FILES:
            raise ToolError(f"there are {MOST_FILES} files already; delete some")
        await self._put(path, text)

    @abstractmethod
    async def _paths(self) -> list[str]:
        """All files."""

    @abstractmethod
    async def _get(self, path: str) -> str:
        """The text of a file that is there."""

    @abstractmethod
    async def _put(self, path: str, text: str) -> None:
        """Make or replace a file."""

    @abstractmethod
    async def _drop(self, path: str) -> None:
        """Delete a file that is there."""


class MemoryTree(Tree):
    """Files in a dictionary."""

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__()
        self._files = dict(files)

    async def _paths(self) -> list[str]:
        return list(self._files)

    async def _get(self, path: str) -> str:
        return self._files[path]

    async def _put(self, path: str, text: str) -> None:
        self._files[path] = text

    async def _drop(self, path: str) -> None:
        del self._files[path]


def _checked(path: str) -> str:
    """Raises: ToolError saying how to write a path."""
    if not _PATH.fullmatch(path):
        raise ToolError("write a path as dir/file, in letters, digits, dots and dashes")
    return path


def _directory(path: str, paths: list[str]) -> bool:
    return any(other.startswith(path + "/") for other in paths)
