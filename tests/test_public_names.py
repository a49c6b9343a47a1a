"""What `import sortie` offers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import sortie

DOCS = Path(__file__).parent.parent / "docs"
HEAVY = ("torch", "transformers", "matplotlib", "pyarrow", "openai", "ray", "vllm", "mcp", "peft", "numpy", "pydantic")


def documented_names(page: Path) -> list[str]:
    """Names in the first column of the page's tables."""
    return re.findall(r"^\| `(\w+)` \| \S", page.read_text(), re.M)


def test_public_names_are_the_documented_ones() -> None:
    names = documented_names(DOCS / "api.md")
    assert sortie.__all__ == sorted(names)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", sortie.__all__)
def test_every_public_name_loads_and_has_a_docstring(name: str) -> None:
    assert getattr(sortie, name).__doc__
    assert name in dir(sortie)


def test_the_version_is_the_distributions() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", sortie.__version__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'sortie' has no attribute 'tran'"):
        sortie.tran  # noqa: B018


@pytest.mark.parametrize(
    "code",
    [
        "import sortie",
        "from sortie.cli.main import main; assert main(['--help']) == 0",
        "from sortie.cli.main import main; assert main(['train', '--help']) == 0",
        "from sortie.cli.main import main; assert main(['runs', '--help']) == 0",
    ],
)
def test_import_and_help_load_nothing_heavy(code: str) -> None:
    script = f"{code}\nimport sys\nloaded = {HEAVY!r} & sys.modules.keys()\nassert not loaded, loaded"
    script = script.replace(repr(HEAVY), f"set({HEAVY!r})")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
