# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-tokenizers test-ray test-postgres ui test-ui test-kills test-hard corpus oracles oracles-page fuzz check docs bench bench-scale bench-server parity e2e fix clean

help:  ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-15s %s\n", $$1, $$2}'

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY)  ## prepare real rows and examples/, and explain what came of them
	$(BIN)/python examples/demo.py

test: $(READY)  ## run the tests on two processes
	$(BIN)/python -m pytest -n 2 -q

SITE := NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

check: $(READY)  ## lint, format, types, import layers and docs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(SITE) --site-dir $(VENV)/.site

docs: $(READY)  ## write docs/reference from the code, and the site into site/
	$(BIN)/python docs/build_reference.py
	$(SITE)

test-slow: $(READY)  ## run the tests that take minutes: kills, memory, hostile files
	$(BIN)/python -m pytest -q -m slow

test-tokenizers: $(READY)  ## run the tests that read the tokenizers of six model families (fetches 230 MB once)
	$(BIN)/python -m pytest -n 2 --dist loadgroup -q -m tokenizers

test-ray: $(READY)  ## run the tests that start Ray clusters on this machine
	$(BIN)/python -m pytest -q -m ray

test-postgres: $(READY)  ## run the tests of the service on PostgreSQL, which they start
	$(BIN)/python -m pytest -n 2 -q -m postgres

NPM := npm --prefix ui --no-audit --no-fund
UI_READY := ui/node_modules/.installed

$(UI_READY): ui/package-lock.json
	@command -v npm >/dev/null || { echo "needs Node 20 or newer, with npm" >&2; exit 1; }
	$(NPM) ci
	@touch $@

ui: $(UI_READY)  ## build the page that `turnmill serve` shows (needs Node 20 or newer)
	$(NPM) run build

test-ui: $(READY) ui  ## check the page: lint, types, components, and a tour in Chromium against a real server
	$(NPM) run check
	$(NPM) test
	$(BIN)/python -m pytest -q -m ui
	CHROMIUM=$$(ui/e2e/chromium.sh) $(NPM) run e2e

ORACLES := $(VENV)/.oracles

$(ORACLES): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,oracles]'
	@touch $@

oracles: $(ORACLES)  ## put other libraries' ids and labels beside ours
	$(BIN)/python -m pytest -q -m oracles

oracles-page: $(ORACLES)  ## write what they say into docs/reference/oracles.md
	$(BIN)/python tests/build_oracles_page.py

corpus: $(READY)  ## check the 142 public templates, and write docs/reference/templates.md
	$(BIN)/python tests/build_corpus_page.py

CASES ?= 100000
SEED ?= 1

test-kills: $(READY)  ## kill prepare and a graph of steps at 200 random moments and resume them
	$(BIN)/python -m pytest -q -m slow tests/behaviour/test_prepare_killed.py tests/behaviour/test_steps_killed.py

test-hard: $(READY)  ## feed it bombs, lines of a gigabyte and other hostile files
	$(BIN)/python -m pytest -q -m slow tests/hostile

fuzz: $(READY)  ## feed it CASES damaged files and compare CASES replays, drawn from SEED
	$(BIN)/python tests/fuzz/run.py --cases $(CASES) --seed $(SEED)
	$(BIN)/python tests/fuzz/run_replays.py --cases $(CASES) --seed $(SEED)

fix: $(READY)  ## mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY)  ## time prepare beside its peers, its stages and rendering (forty minutes)
	$(BIN)/python bench/run.py

bench-scale: $(READY)  ## time prepare with one and two processes and on Ray, over 1x and 10x the rows
	$(BIN)/python bench/scale.py

bench-server: $(READY)  ## time a server over 100 datasets at 4 and 32 clients while datasets change, and an upload of 300 MB
	$(BIN)/python bench/server.py

parity: $(READY)  ## let Axolotl, LLaMA-Factory and ms-swift load exports with their own code, each in its environment
	$(BIN)/python bench/parity.py

e2e: $(READY)  ## prepare real rows, train SmolLM2 on them, evaluate, audit and export it (some minutes)
	examples/training/run.sh

clean:  ## remove the environment and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
