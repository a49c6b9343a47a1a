PY ?= python3
TORCH ?= torch==2.13.0
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help install quickstart test check bench docs clean

help:  ## what the targets do
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

# torch first and by exact version: an open range would take a CUDA build of several GB.
.venv/.installed: pyproject.toml
	$(PY) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet "$(TORCH)"
	$(BIN)/pip install --quiet -e ".[dev]"
	@touch $@

install: .venv/.installed  ## make .venv with Sortie and its development tools

quickstart: install  ## train SmolLM2-135M to use tools on this machine's CPU (about 12 minutes)
	$(BIN)/sortie train recipes/quickstart/run.toml

test: install  ## run the tests
	$(BIN)/pytest -n 2 -m "not slow"

check: install  ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:  ## remove the virtual environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
