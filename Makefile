# Every target works on a fresh clone with python3 and make alone; uv is used when present.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help demo test quick check format lint types docs site wheel bench bench-matching bench-statistics bench-scale walk model soak fuzz mutants frameworks release clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/base: pyproject.toml requirements/base.txt
	@test -x $(BIN)/python || $(if $(UV),$(UV) venv -q --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV))
	@$(if $(UV),VIRTUAL_ENV=$(VENV) $(UV) pip install -q,$(BIN)/python -m pip install -q --disable-pip-version-check) -r requirements/base.txt
	@$(if $(UV),VIRTUAL_ENV=$(VENV) $(UV) pip install -q,$(BIN)/python -m pip install -q --disable-pip-version-check) --no-deps -e .
	@touch $@

$(VENV)/dev: $(VENV)/base requirements/dev.txt
	@$(if $(UV),VIRTUAL_ENV=$(VENV) $(UV) pip install -q,$(BIN)/python -m pip install -q --disable-pip-version-check) -r requirements/dev.txt
	@touch $@

# Without their dependencies, which nothing here uses and which would be compiled.
$(VENV)/llm: $(VENV)/dev requirements/llm.txt
	@$(if $(UV),VIRTUAL_ENV=$(VENV) $(UV) pip install -q,$(BIN)/python -m pip install -q --disable-pip-version-check) --no-deps -r requirements/llm.txt
	@touch $@

# An environment of their own: they are more packages than everything else together.
.frameworks/ready: pyproject.toml requirements/frameworks.txt
	@test -x .frameworks/bin/python || $(if $(UV),$(UV) venv -q --python $(PYTHON) .frameworks,$(PYTHON) -m venv .frameworks)
	@$(if $(UV),VIRTUAL_ENV=.frameworks $(UV) pip install -q,.frameworks/bin/python -m pip install -q --disable-pip-version-check) -r requirements/frameworks.txt
	@$(if $(UV),VIRTUAL_ENV=.frameworks $(UV) pip install -q,.frameworks/bin/python -m pip install -q --disable-pip-version-check) --no-deps -e .
	@touch $@

# What builds the docs as pages; karat itself is read there and not installed.
.site/ready: requirements/site.txt
	@test -x .site/bin/python || $(if $(UV),$(UV) venv -q --python $(PYTHON) .site,$(PYTHON) -m venv .site)
	@$(if $(UV),VIRTUAL_ENV=.site $(UV) pip install -q,.site/bin/python -m pip install -q --disable-pip-version-check) -r requirements/site.txt
	@touch $@

.release/ready: requirements/release.txt
	@test -x .release/bin/python || $(if $(UV),$(UV) venv -q --python $(PYTHON) .release,$(PYTHON) -m venv .release)
	@$(if $(UV),VIRTUAL_ENV=.release $(UV) pip install -q,.release/bin/python -m pip install -q --disable-pip-version-check) -r requirements/release.txt
	@touch $@

demo: $(VENV)/base ## set up and score two retrievers on the bundled help centre
	@$(BIN)/karat demo

test: $(VENV)/dev ## set up and run all tests, on all cores
	$(BIN)/python -m pytest -n auto

quick: $(VENV)/dev ## the tests that take no seconds each, on all cores
	$(BIN)/python -m pytest -q -n auto -m "not slow and not llm and not frameworks"

frameworks: .frameworks/ready ## the tests with real retrieval frameworks
	.frameworks/bin/python -m pytest -q -n auto -m frameworks tests/retrieving tests/examples

format: $(VENV)/dev ## rewrite the code in the house's format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(VENV)/dev ## format, lint and floors, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 0 -m "not slow" tests/architecture/test_budgets.py

types: $(VENV)/dev ## type-check sources and tests
	$(BIN)/mypy

docs: $(VENV)/dev ## write the generated reference pages anew
	$(BIN)/python -m tests.docs.reference

site: .site/ready ## the docs as pages in site/, which open from disk; warnings are errors
	.site/bin/python -m zensical build --strict --clean

mutants: $(VENV)/dev ## change sources one thing at a time, and see which changes tests miss
	$(BIN)/python -m tests.mutants

walk: $(VENV)/dev ## the way of ordinary calls through the rooms
	$(BIN)/python -m tests.architecture.walk

wheel: $(VENV)/dev ## build the wheel and try it in an environment of its own
	rm -rf dist build
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m tests.wheel

release: $(VENV)/dev .release/ready ## build wheel and sdist, check and try both, list their parts
	rm -rf dist build
	$(BIN)/python -m build --no-isolation --outdir dist
	.release/bin/twine check --strict dist/*
	.release/bin/check-wheel-contents dist/*.whl
	$(BIN)/python -m tests.wheel build/all
	.release/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible -o build/karat.cdx.json build/all
	$(BIN)/python -m tests.licences build/karat.cdx.json

check: lint types test wheel ## all that must hold before a commit

bench: $(VENV)/dev ## speed side by side with the peers, as ratios
	$(BIN)/python bench/run.py

bench-matching: $(VENV)/dev ## how right and how fast text matching is
	$(BIN)/python bench/matching.py

bench-statistics: $(VENV)/dev ## whether intervals and tests keep what they promise, simulated
	$(BIN)/python bench/simulation.py

bench-scale: $(VENV)/dev ## what large runs in Parquet cost, by rows; ROWS=8 for 10^8
	$(BIN)/python bench/scale.py --rows $(or $(ROWS),7)

model: $(VENV)/llm ## install a small real model, and judge with it
	$(BIN)/python -m pytest -q -m llm

soak: $(VENV)/dev ## kill what writes a thousand times, and let fifty clients label for a minute; nothing may be lost
	KARAT_KILLS=250 $(BIN)/python -m pytest -q -n 0 tests/test_kills.py
	KARAT_KILLS=100 $(BIN)/python -m pytest -q tests/llm/test_kills.py
	KARAT_LOAD_SECONDS=60 $(BIN)/python -m pytest -q -n 0 tests/web/test_load.py

fuzz: $(VENV)/dev ## read 200,000 damaged and odd inputs; none may end or blame karat
	$(BIN)/python -m tests.fuzz.pool --count 200000

clean: ## remove what the targets made
	rm -rf $(VENV) .frameworks .release dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench .site .cache site
