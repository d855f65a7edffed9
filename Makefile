# Every target sets up what it needs: a clone, Python 3.11 or newer and make are enough.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first interpreter that is new enough and really runs (a version manager's shim may exist and refuse).
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed
# More than there are processors: half of the tests wait for a process, a server or a browser.
JOBS ?= 4
# Of `make worlds`.
FIRST ?= 1
SEEDS ?= 400
MINUTES ?= 240

.PHONY: help venv up check test test-agents record-agents torture worlds bench audit pictures format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## only the environment: .venv/bin/wakeful, .venv/bin/python

$(STAMP): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Wakeful needs Python 3.11 or newer: install it, or name it with make PYTHON=/path/to/python"; exit 1; }
	@rm -f $(STAMP)
	@echo "making the environment in $(VENV): about a minute, and only when what it is made of is new"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

up: $(STAMP) ## the daemon in the foreground; its page: http://127.0.0.1:8377
	$(BIN)/wakeful up

check: $(STAMP) ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(STAMP) ## all tests
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal -m "not torture and not agents"

test-agents: $(STAMP) ## seven real command-line agents against a model server on loopback (Node; twenty minutes)
	PYTHONPATH=tests $(BIN)/python tests/real_agents/install.py
	$(BIN)/pytest -q -n $(JOBS) --dist loadgroup -m agents tests/real_agents

record-agents: $(STAMP) ## record again what the real agents print, for the fast tests
	PYTHONPATH=tests $(BIN)/python tests/real_agents/install.py
	PYTHONPATH=tests $(BIN)/python -m agents.record

torture: $(STAMP) ## the long fault tests
	$(BIN)/pytest -q -m torture

worlds: $(STAMP) ## random worlds with everything in them, bounded (SEEDS=400 FIRST=1 MINUTES=240)
	$(BIN)/python -m wakeful.simulation --seed $(FIRST) --through $$(($(FIRST) + $(SEEDS) - 1)) --minutes $(MINUTES)

bench: $(STAMP) $(PEERS_STAMP) ## ours beside its peers, in one run (QUICK=1: three minutes)
	$(BIN)/python -m bench $(if $(QUICK),--quick)

pictures: $(STAMP) ## the pictures of the docs, from the demo (needs Chromium)
	$(BIN)/python docs/pictures/take.py

# The peers live apart: nothing of theirs is ever among our dependencies.
$(PEERS_STAMP): requirements/bench-peers.txt | $(STAMP)
	@rm -f $(PEERS_STAMP)
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench-peers.txt
	@touch $(PEERS_STAMP)

audit: ## look for known holes in what is pinned (needs the network)
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --disable-pip --require-hashes -r requirements/dev.txt

format: $(STAMP) ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## compile the pinned requirements anew (needs uv on the PATH)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
		--group dev pyproject.toml -o requirements/dev.txt

clean: ## remove what the targets made
	rm -rf $(VENV) $(PEERS) .agents .venv-audit bench/results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist
