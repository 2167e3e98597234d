# Each target prepares `.venv` by itself; a second run finds it ready and starts at once.
#
#   make demo     a real workflow from start to finish (KEEP=1 leaves it running)
#   make test     every test, on SQLite and on MariaDB
#   make coverage the same, and how much of the core it runs (the floor is 95 % of the branches)
#   make soak     a long storm over a whole installation (MINUTES=20 DB=sqlite|mariadb SEED=)
#   make planted  plant known mistakes and see which tests find them
#   make check    format, lint, types, import contracts, generated files
#   make fmt      put the code into its format
#   make generate write the generated files anew
#   make bench    speed, in minutes; bench-full: at full size; bench-profile ROW=B1: where the time goes
#   make docs     build the documentation into docs/_build/html
#   make clean    remove everything that was made here

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The first Python that is new enough.
PYTHON ?= $(shell for each in python3 python3.11 python3.12 python3.13; do \
	"$$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$each"; break; }; done)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
WORKERS ?= 2
PYTEST_ARGS ?=
KEEP ?=
ROW ?= B1
DIALECT ?= sqlite
BENCH_ARGS ?=
MINUTES ?= 20
DB ?= sqlite
SEED ?=

PACKAGES := orbit_sdk orbit_server
FORMATTED := $(PACKAGES) tools tests examples docs

.PHONY: help bench coverage bench-full bench-profile demo test soak planted check fmt generate docs pin clean

help:
	@sed -n '3,13s/^# *//p' Makefile

# Two stamps, because the demo needs only what a server needs.
.venv/.server: requirements/build.txt requirements/server.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Orbit needs Python 3.11 or newer" >&2; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@$(PIP) --require-hashes -r requirements/build.txt -r requirements/server.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: .venv/.server requirements/dev.txt
	@$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

demo: .venv/.server
	@KEEP="$(KEEP)" $(BIN)/python -m examples.external_job.demo

test: .venv/.dev
	@$(BIN)/python tools/find_mariadbd.py
	@$(BIN)/python tools/find_node.py
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Apart from `test`, because tracing every process makes the suite half as slow again.
coverage: .venv/.dev
	@$(BIN)/python tools/find_mariadbd.py
	@$(BIN)/python tools/find_node.py
	@rm -f .coverage .coverage.*
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cov --cov-report= $(PYTEST_ARGS)
	$(BIN)/python tools/coverage_floor.py

soak: .venv/.dev
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --db $(DB) $(if $(SEED),--seed $(SEED))

planted: .venv/.dev
	$(BIN)/python tools/planted_faults.py

check: .venv/.dev
	$(BIN)/ruff format --check $(FORMATTED)
	$(BIN)/ruff check $(FORMATTED)
	$(BIN)/mypy
	$(BIN)/basedpyright --warnings
	$(BIN)/lint-imports
	$(BIN)/python tools/generate.py --check

fmt: .venv/.dev
	$(BIN)/ruff format $(FORMATTED)
	$(BIN)/ruff check --fix $(FORMATTED)

generate: .venv/.dev
	$(BIN)/python tools/generate.py

docs: .venv/.dev
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html

bench: .venv/.dev
	$(BIN)/python -m tests.bench.run --size quick $(BENCH_ARGS)

bench-full: .venv/.dev
	$(BIN)/python -m tests.bench.run --size full $(BENCH_ARGS)

bench-profile: .venv/.dev
	$(BIN)/python -m tests.bench.profile $(ROW) --dialect $(DIALECT)

# Take newer versions of everything this project depends on.
pin: .venv/.dev
	$(BIN)/python tools/pin_requirements.py

clean:
	rm -rf .venv build dist docs/_build htmlcov .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache \
		.hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
