PY ?= python3
TORCH ?= torch==2.13.0
BIN := .venv/bin
# Every module of benchmarks/ that can be run, packages included.
BENCHMARKS := $(patsubst benchmarks/%.py,%,$(shell grep -l __main__ benchmarks/*.py)) \
	$(patsubst benchmarks/%/__main__.py,%,$(wildcard benchmarks/*/__main__.py))

.DEFAULT_GOAL := help
.PHONY: help install quickstart test check bench docs clean

help:  ## what the targets do
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 14

# torch first and by exact version: an open range would take a CUDA build of several GB.
.venv/.installed: pyproject.toml
	$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sortie needs Python 3.11 or later: make PY=python3.11")'
	$(PY) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "$(TORCH)"
	$(BIN)/pip install --quiet -e ".[dev]"
	@touch $@

install: .venv/.installed  ## make .venv with Sortie and its development tools

quickstart: install  ## train SmolLM2-135M to use tools on this machine's CPU (4 to 5 minutes on a recent CPU)
	$(BIN)/sortie train recipes/quickstart/run.toml

# Two workers with one torch thread each; a file stays on one worker, so that its fixtures are made once.
test: install  ## run the tests (the model they need is fetched once, about 90 MB)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist loadfile -m "not slow"

check: install  ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# One after the other: each wants the machine to itself. The first run makes the rivals' environments.
bench: install  ## every benchmark, quickly (minutes each; rivals are installed under .bench once)
	for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name --quick || exit 1; done

docs: install  ## write docs/cli.md from the help texts
	$(BIN)/python -m sortie.cli.reference > docs/cli.md

clean:  ## remove the virtual environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist src/*.egg-info
