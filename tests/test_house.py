"""The house stays in order: sizes, mirrors and imports (docs/architecture.md, "Numbers to hold")."""

from __future__ import annotations

import ast
import math
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "sortie"
TESTS = ROOT / "tests"
MODULES = sorted(SOURCE.rglob("*.py"))


def percentile(values: list[int], share: float) -> int:
    return sorted(values)[min(len(values) - 1, math.ceil(share * len(values)) - 1)]


def functions(path: Path) -> list[tuple[str, int]]:
    """Name and length in lines of every function of a module, nested ones included, docstrings not counted."""
    tree = ast.parse(path.read_text())
    out = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            doc = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            doc_lines = doc.end_lineno - doc.lineno + 1 if doc is not None and doc.end_lineno else 0
            assert node.end_lineno is not None
            out.append((f"{path.relative_to(SOURCE)}:{node.name}", node.end_lineno - node.lineno + 1 - doc_lines))
    return out


def test_modules_are_short() -> None:
    lines = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}
    written = [count for name, count in lines.items() if not name.endswith("__init__.py")]
    assert percentile(written, 0.5) <= 150
    assert percentile(written, 0.9) <= 350
    assert {name: count for name, count in lines.items() if count > 500} == {}


def test_functions_are_short() -> None:
    found = dict(entry for path in MODULES for entry in functions(path))
    assert percentile(list(found.values()), 0.9) <= 35
    assert {name: count for name, count in found.items() if count > 80} == {}


def test_every_module_says_what_it_is_for() -> None:
    assert [str(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def broad_handlers(path: Path) -> list[int]:
    """Lines of handlers that catch everything and do not raise it again."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or re.search(r"\b(Base)?Exception\b", ast.unparse(node.type)))
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
    ]


def test_a_broad_except_gives_its_reason_on_its_line() -> None:
    silent = []
    for path in MODULES:
        lines = path.read_text().splitlines()
        for number in broad_handlers(path):
            comment = lines[number - 1].partition("#")[2].replace("noqa: BLE001", "")
            if len(re.findall(r"\w+", comment)) < 3:
                silent.append(f"{path.relative_to(SOURCE)}:{number}")
    assert silent == []


def test_test_files_mirror_modules() -> None:
    """tests/AREA/.../test_X.py is about src/sortie/AREA/: every area that has code has tests, and no other has.

    Benchmarks lie beside src and their tests in tests/benchmarks/.
    """
    areas = {"benchmarks"} | {
        path.relative_to(SOURCE).parts[0] for path in MODULES if len(path.relative_to(SOURCE).parts) > 1
    }
    tested = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py") if path.parent != TESTS}
    assert tested == areas


def test_no_two_test_files_share_a_name() -> None:
    names = [path.name for path in TESTS.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    assert [str(path) for path in MODULES if marks.search(path.read_text())] == []


def test_no_path_of_a_machine_is_in_the_repository() -> None:
    pattern = re.compile(r"/(?:home|root|Users|work)/[\w.]+")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    files = listed.stdout.split() if listed.returncode == 0 else []
    texts = [
        path for path in map(ROOT.joinpath, files) if path.suffix in {".py", ".md", ".toml", ".txt"} and path.exists()
    ]
    assert [str(path) for path in texts if pattern.search(path.read_text()) and path != Path(__file__)] == []


def test_imports_point_one_way_and_heavy_libraries_stay_in_their_places() -> None:
    """The contracts of pyproject.toml, as `make check` runs them."""
    script = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_subpackages_never_import_each_other_both_ways() -> None:
    edges: set[tuple[str, str]] = set()
    for path in MODULES:
        area = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sortie."):
                edges.add((area, node.module.split(".")[1]))
    edges = {(one, other) for one, other in edges if one not in (other, "__init__")}
    assert sorted((one, other) for one, other in edges if (other, one) in edges) == []
