# The commands developers run are the ones .ci/run runs. `make help` lists them.
PYTHON ?= python3
BIN := .venv/bin
RUNTIME := $(PYTHON) scripts/bootstrap
DEV := $(PYTHON) scripts/bootstrap --dev

.DEFAULT_GOAL := help
.PHONY: help demo up test bench fuzz check audit-deps texts fmt lock clean crash-matrix torture torture-proof

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo:  ## the main job, end to end, narrated; exit 0 only if each step was verified in the ERP database
	@$(RUNTIME)
	@$(BIN)/opstage demo

up:  ## everything on embedded defaults, until Ctrl-C
	@$(RUNTIME)
	@$(BIN)/opstage up

test:  ## all tests; those whose server is unreachable are skipped and say how to run them (ARGS="-k name")
	@$(DEV)
	@$(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder $(ARGS)

bench:  ## the same ERP write through Opstage, by hand and through other queues (ARGS="--only opstage,bare --n 2000")
	@$(DEV)
	@$(MAKE) --no-print-directory .venv-bench/complete
	@$(BIN)/python -m tests.benchmarks $(ARGS)

# What we are compared with stays out of the environment everybody develops in.
.venv-bench/complete: locks/bench.txt
	@$(BIN)/python -m venv --clear .venv-bench
	@.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/bench.txt
	@touch $@

crash-matrix:  ## processes lost at every window × signal × database (ARGS="--window W5,W6 --database sqlite" SETTINGS="OPSTAGE_X=1")
	@$(DEV)
	@$(BIN)/python -m tests.crash_matrix $(ARGS) $(if $(SETTINGS),--set $(SETTINGS))

fuzz:  ## hostile requests at every call of the API, many more than in test (OPSTAGE_FUZZ_EXAMPLES, default 1000)
	@$(DEV)
	@OPSTAGE_FUZZ_EXAMPLES=$${OPSTAGE_FUZZ_EXAMPLES:-1000} $(BIN)/python -m pytest -n 2 --timeout 3600 \
		tests/integration/api/test_fuzz.py tests/integration/api/test_conformity.py $(ARGS)

# SHARED=0: queue and ERP in two databases. SETTINGS="OPSTAGE_NAME=value …" go to every process.
# PACE=0.1: quick operations, which share commits. PLANT=ledger|fencing|order takes a safeguard out.
torture:  ## everything is killed while clients confirm; the oracle judges (SECONDS=60 SEED= DB=postgresql|mariadb|sqlite SHARED=1)
	@$(DEV)
	@$(BIN)/python -m tests.torture.main --seconds "$(or $(SECONDS),60)" --seed "$(SEED)" --db "$(or $(DB),postgresql)" \
		--shared "$(or $(SHARED),1)" --settings "$(SETTINGS)" --pace "$(or $(PACE),1)" --plant "$(PLANT)"

torture-proof:  ## torture with a safeguard removed, three times: each has to fail
	@$(DEV)
	@$(BIN)/python -m pytest tests/torture -k notices

check:  ## lint, format, types and import contracts
	@$(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit-deps:  ## known vulnerabilities of what is deployed, where an advisory database can be reached; else its hashes
	@$(DEV)
	@$(BIN)/python scripts/audit-deps

texts:  ## collect the page's texts into its catalogues; names those that need a translation
	@$(DEV)
	@$(BIN)/python scripts/texts

fmt:  ## let ruff fix and format what it can
	@$(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock:  ## resolve pyproject.toml into locks/ again (needs uv; UPGRADE=1 takes newer releases)
	$(PYTHON) scripts/lock $(if $(UPGRADE),--upgrade)

clean:  ## remove caches, artifacts and the embedded data directory; .venv stays
	rm -rf .opstage artifacts dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path ./.venv -prune -o -name __pycache__ -type d -print0 | xargs -0 rm -rf
