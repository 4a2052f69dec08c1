# Dragoman: `make serve` and `make test` are all that a newcomer needs; both install into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?= ./data

.PHONY: help serve test lint format bench crash simulation fuzz mutants kernels interop interop-build clean
.DEFAULT_GOAL := help

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Dragoman needs Python 3.11 or newer; set PYTHON=python3.x" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.serve: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.serve

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@ $(VENV)/.test $(VENV)/.serve

serve: $(VENV)/.serve ## Install and start the gateway with its log in ./data
	$(BIN)/dragoman serve --data $(DATA)

test: $(VENV)/.test ## Install and run the tests (no other toolchain needed)
	$(BIN)/python -m pytest

lint: $(VENV)/.lint ## Check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

kernels: $(VENV)/.lint ## Regenerate codecs/kernels/ from the declarations
	$(BIN)/python -m dragoman.codecs.declared

bench: $(VENV)/.test ## Measure throughput and latency; prints one table
	$(BIN)/python bench/throughput.py

crash: $(VENV)/.test ## The long form of the crash battery, with a table of results (about two hours)
	CRASH_KILLS=$${CRASH_KILLS:-2000} \
	CRASH_DOUBLE=$${CRASH_DOUBLE:-500} \
	CRASH_STATES=$${CRASH_STATES:-2000000} \
	CRASH_PHANTOMS=$${CRASH_PHANTOMS:-20000} \
	CRASH_TORN_SIZES=$${CRASH_TORN_SIZES:-3} \
	CRASH_LARGE_FLIPS=$${CRASH_LARGE_FLIPS:-1000000} \
	CRASH_FLIP_SAMPLES=$${CRASH_FLIP_SAMPLES:-100000} \
	CRASH_SYNC_FAILURES=$${CRASH_SYNC_FAILURES:-200} \
	CRASH_SITE_CALLS=$${CRASH_SITE_CALLS:-20} \
	CRASH_STRACE=$${CRASH_STRACE:-200} \
	CRASH_RECOVERIES=$${CRASH_RECOVERIES:-200} \
		$(BIN)/python -m pytest tests/crash -o timeout=0

simulation: $(VENV)/.test ## The long form of the simulation: 50,000 runs of 200 requests (about an hour)
	SIMULATION_SEEDS=$${SIMULATION_SEEDS:-50000} \
		$(BIN)/python -m pytest tests/simulation -o timeout=0

fuzz: $(VENV)/.test ## The long form of the fuzz tests: 1,000,000 inputs a dialect (about an hour)
	FUZZ_INPUTS=$${FUZZ_INPUTS:-1000000} FUZZ_LIVE_INPUTS=$${FUZZ_LIVE_INPUTS:-50000} \
		$(BIN)/python -m pytest tests/fuzz -o timeout=0

mutants: $(VENV)/.test ## Break the engine on purpose, one way after another, and see the tests notice (minutes)
	$(BIN)/python tests/mutants/catch.py

interop: $(VENV)/.test ## Drive published clients against the gateway
	$(BIN)/python -m pytest -m interop tests/interop

interop-build: ## Build what interop drives of Rust (some minutes) and Go, each where its toolchain is
	@if command -v cargo >/dev/null && pkg-config --exists openssl; then \
		OPENSSL_NO_VENDOR=1 cargo build --locked \
			--manifest-path tests/interop/iggy_rust/Cargo.toml --target-dir .interop/iggy_rust; \
	else echo "The Rust clients of Iggy need cargo, libssl-dev and pkg-config: left out." >&2; fi
	@if command -v go >/dev/null; then \
		cd tests/interop/cursus_e2e && go test -c -mod=readonly \
			-o ../../../.interop/cursus_e2e/cursus-e2e.test github.com/downfa11-org/go-broker/test/e2e; \
	else echo "The Go suite of the Cursus broker needs Go 1.25: left out." >&2; fi

clean: ## Remove the environment and caches (never ./data)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
