# Everything sets itself up: `make demo` and `make test` work in a fresh clone
# that has Python 3.12 and make. uv is used when it runs, bootstrapped when not.
export UV_PYTHON_DOWNLOADS := never
export MPLBACKEND := Agg
# Tests start many processes: without bytecode each compiles the package, and pytest all tests.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# A worker of pytest for each core.
PARALLEL := -n auto --dist worksteal
# What may be installed: these versions, or for `make fresh` the lowest or the newest.
VERSIONS ?= -c constraints.txt
# Where HOME cannot be written, uv keeps what it downloads here.
ifeq ($(UV_CACHE_DIR)$(shell mkdir -p "$${XDG_CACHE_HOME:-$$HOME/.cache}" 2>/dev/null && echo yes),)
export UV_CACHE_DIR := $(CURDIR)/.tools/cache
endif
# `uv --version`, not `command -v uv`: a pyenv shim may exist and still not run.
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .tools/bin/uv)

.DEFAULT_GOAL := help
.PHONY: help setup demo paper test test-full lint format bench fresh fuzz faults mutants invariances coverage wheel-test clients types docs clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.tools/bin/uv:
	$(PYTHON) -m venv .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check uv

$(READY): pyproject.toml constraints.txt $(filter-out uv,$(UV))
	$(UV) venv --quiet --allow-existing --python "$$(cat .python-version)" $(VENV)
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python $(VERSIONS) -e '.[dev]'
	@touch $@

setup: $(READY) ## the virtual environment in .venv

demo: setup ## Ripley's data by the Bayesian classifier: numbers, a report, a picture
	$(BIN)/bayesknn demo

paper: setup ## every figure, table and number of the paper, in paper-output
	$(BIN)/bayesknn paper --out paper-output $(PAPER)

test: setup ## the tests that CI runs
	$(BIN)/pytest $(PARALLEL)

test-full: setup ## the long statistical tests, and the mutants that show what tests notice
	$(BIN)/pytest $(PARALLEL) -m "not client" --hypothesis-profile=full

lint: setup ## ruff, mypy and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## every speed target as a ratio, measured in one run
	$(BIN)/python -m benchmarks

fresh: ## the tests in a clean clone that differs from this machine; RECIPE=elsewhere
	$(PYTHON) -m campaigns.fresh $(or $(RECIPE),elsewhere) $(PYTEST)

fuzz: setup ## thousands of files and arguments that nobody meant
	$(BIN)/pytest tests/campaigns/test_fuzz.py --hypothesis-profile=fuzz $(FUZZ)

faults: setup ## kills, interrupts, full disks and two at once; what is left is compared bit for bit
	$(BIN)/python -m campaigns faults $(FAULTS)

mutants: setup ## slips in the statistical core that the tests must notice; lists the survivors
	$(BIN)/python -m campaigns mutants $(MUTANTS)

invariances: setup ## 2,000 cases of what must stay equal when something changes that should not matter
	$(BIN)/python -m campaigns invariances $(INVARIANCES)

coverage: setup ## which lines the tests run; kernels are compiled, and left out
	COVERAGE_CORE=sysmon $(BIN)/coverage run -m pytest
	$(BIN)/coverage report

wheel-test: setup ## the wheel in clean environments, without extras and with each
	$(BIN)/python .ci/wheel_test.py $(UV) $(PYTHONS)

clients: $(VENV)/.clients ## libraries of others around the classifiers, as their documentation says
	$(BIN)/pytest tests/clients -m client $(CLIENTS)

$(VENV)/.clients: $(READY)
	$(UV) pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[clients]'
	@touch $@

types: setup ## the types of all public names, as pyright finds them in the installed wheel
	$(BIN)/python .ci/check_types.py $(UV)

docs: $(VENV)/.docs ## the documentation, in docs/_build/html
	rm -rf docs/_build docs/_generated docs/api docs/tutorials
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

$(VENV)/.docs: $(READY)
	$(UV) pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[docs]'
	@touch $@

clean: ## forget the environment and every cache
	rm -rf $(VENV) .tools .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build
	rm -rf docs/_build docs/_generated docs/api docs/tutorials demo-output paper-output fuzz-found invariances-found
	find src tests benchmarks campaigns -name __pycache__ -prune -exec rm -rf {} +
