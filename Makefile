# Every target sets up what it needs: a clone, Python 3.11 or newer and make are enough.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first interpreter that is new enough and really runs (a version manager's shim may exist and refuse).
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# The first marks that the runtime dependencies are installed, the second that the development ones are too.
RUN_STAMP := $(VENV)/.runs
STAMP := $(VENV)/.installed
PIP := $(BIN)/pip --quiet --disable-pip-version-check
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed
# More than there are processors: half of the tests wait for a process, a server or a browser.
JOBS ?= 4
# Without bytecode every process of the tests compiles everything again: a third of their time.
unexport PYTHONDONTWRITEBYTECODE
# Of `make worlds`.
FIRST ?= 1
SEEDS ?= 400
MINUTES ?= 240

# For every Python and system at once, with hashes, and without the address of an index.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links

.PHONY: help venv up dist docs check test test-agents record-agents torture worlds bench audit pictures page-speed format lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(STAMP) ## create the environment only: .venv/bin/wakeful, .venv/bin/python

# Kept if its Python is the right one: a daemon that runs from here imports modules late, and must find them until it is
# restarted.
VERSION := -c 'import sys; print(*sys.version_info[:2])'
$(RUN_STAMP): requirements/run.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Wakeful needs Python 3.11 or newer: install it, or name it with make PYTHON=/path/to/python"; exit 1; }
	@rm -f $(RUN_STAMP)
	@test "$$($(BIN)/python $(VERSION) 2>/dev/null)" = "$$($(PYTHON) $(VERSION))" || rm -rf $(VENV)
	@echo "installing what Wakeful needs into $(VENV)"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --no-deps --no-compile --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $(RUN_STAMP)

$(STAMP): requirements/dev.txt $(RUN_STAMP)
	@rm -f $(STAMP)
	@echo "installing what developing needs into $(VENV): about a minute"
	$(PIP) install --no-deps --require-hashes -r requirements/dev.txt
	@touch $(STAMP)

up: $(RUN_STAMP) ## start the daemon in the foreground; its page: http://127.0.0.1:8377
	$(BIN)/wakeful up

docs: $(STAMP) ## build the documentation as a static site with search, in site/
	$(BIN)/python tools/docs_site.py

dist: $(STAMP) ## wheel and sdist, installed into an empty environment and tested
	$(BIN)/python tools/dist.py

check: $(STAMP) ## format, lint, types, import contracts, the model of the protocol
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PYTHONPATH=tests $(BIN)/python -m protocol

# In a new clone, each of the workers would compile every module.
COMPILED := $(wildcard tests/__pycache__/*.pyc)
test: $(STAMP) ## all tests
	@$(BIN)/python tools/test_programs.py
	@test -n "$(COMPILED)" || { echo "compiling the tests"; \
		$(BIN)/pytest --collect-only -qq tests/[a-e]*/ >/dev/null & $(BIN)/pytest --collect-only -qq tests/[f-z]*/ >/dev/null; wait; }
	$(BIN)/pytest -q -n $(JOBS) --dist worksteal

test-agents: $(STAMP) ## seven real command-line agents against a model server on loopback (Node; half an hour)
	PYTHONPATH=tests $(BIN)/python tests/real_agents/install.py
	$(BIN)/pytest -q -n $(JOBS) --dist loadgroup -m agents tests/real_agents

record-agents: $(STAMP) ## record the output of the real agents again, for the fast tests
	PYTHONPATH=tests $(BIN)/python tests/real_agents/install.py
	PYTHONPATH=tests $(BIN)/python -m agents.record

torture: $(STAMP) ## long tests: fault tests, all cases, more examples
	@$(BIN)/python tools/test_programs.py
	WAKEFUL_THOROUGH=1 $(BIN)/pytest -q -n 2 --dist worksteal -m "torture or hypothesis"

worlds: $(STAMP) ## random simulated systems, checked against the laws, bounded (SEEDS=400 FIRST=1 MINUTES=240)
	PYTHONPATH=tests $(BIN)/python -m worlds --seed $(FIRST) --through $$(($(FIRST) + $(SEEDS) - 1)) --minutes $(MINUTES)

bench: $(STAMP) $(PEERS_STAMP) ## benchmark against other schedulers, in one run (QUICK=1: three minutes)
	$(BIN)/python -m bench $(if $(QUICK),--quick)

page-speed: $(STAMP) ## how fast the page is with ten thousand schedules (needs Chromium)
	$(BIN)/python tools/page_speed.py

pictures: $(STAMP) ## take the screenshots of the docs from the demo (needs Chromium)
	$(BIN)/python docs/pictures/take.py

# The peers live apart: nothing of theirs is ever among our dependencies.
$(PEERS_STAMP): requirements/bench-peers.txt | $(STAMP)
	@rm -f $(PEERS_STAMP)
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/bench-peers.txt
	@touch $(PEERS_STAMP)

audit: ## check the pinned dependencies for known vulnerabilities (needs the network)
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	.venv-audit/bin/pip-audit --disable-pip --require-hashes -r requirements/dev.txt

format: $(STAMP) ## format the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: ## compile the pinned requirements again (needs uv on the PATH)
	$(COMPILE) --group dev pyproject.toml -o requirements/dev.txt
	$(COMPILE) --extra postgres --extra apprise --extra mcp --extra celery --extra otel --group build -c requirements/dev.txt pyproject.toml -o requirements/run.txt

clean: ## remove what the targets created
	rm -rf $(VENV) $(PEERS) .agents .venv-audit bench/results .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist site
