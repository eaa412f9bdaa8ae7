# Every target sets up .venv from uv.lock when it is missing or stale. Plain `make` lists them.
PYTHON ?= python3
BIN := .venv/bin
SYNCED := .venv/.synced
EXTRAS := --extra lab --extra local --extra names --extra cluster --group weights

.PHONY: help setup demo local lab test lint bench sweep clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(SYNCED): uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; give one with: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'
	@UV_PROJECT_ENVIRONMENT=.venv $(BIN)/uv sync --quiet --locked --inexact --python $(BIN)/python $(EXTRAS)
	@touch $@

setup: $(SYNCED) ## set up .venv from the lock file

demo: $(SYNCED) ## run the five notebooks on the built-in input into outputs/demo
	@$(BIN)/plumbline run params/demo.yaml

local: $(SYNCED) ## a small run with the small model on this machine as writer and judge
	@$(BIN)/plumbline run params/local_llm.yaml

lab: $(SYNCED) ## open JupyterLab at the first notebook
	@$(BIN)/jupyter lab workspaces import notebooks/plumbline.jupyterlab-workspace
	@$(BIN)/jupyter lab --ServerApp.root_dir=notebooks --LabApp.default_url=/lab/workspaces/plumbline

test: $(SYNCED) ## pass the tests
	@$(BIN)/python -m pytest -q

lint: $(SYNCED) ## check style, types and that the notebooks are committed without outputs
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/nbstripout --verify --keep-id --extra-keys "metadata.papermill cell.metadata.papermill" notebooks/*.ipynb
	@$(BIN)/mypy

bench: $(SYNCED) ## measure speed and memory beside their baselines, as ratios
	@for script in tests/bench_*.py; do \
		echo "== $$script"; $(BIN)/python -m tests.$$(basename $$script .py) || exit 1; \
	done

sweep: $(SYNCED) ## all conditions on every recipe of FILE, three seeds: make sweep FILE=recipes.jsonl
	@$(BIN)/python tests/sweep.py $(FILE)

clean: ## remove .venv and caches; outputs/ stays
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
