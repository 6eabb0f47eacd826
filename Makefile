# Two commands do everything: `make demo` and `make test`. Both make their own virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test test-slow test-all lint format engine-test chaos mutants proof papers bench-simulation bench-db bench-runner bench-fleet bench-page bench-information tutorial docs clean

help:
	@echo "make demo         a tuning run of the bundled engine in about five minutes, start to result"
	@echo "make test         lint, types, import contracts, and the tests to run before every push"
	@echo "make test-all     make test, then the slower tests"
	@echo "make chaos        the long forms of the random suites (SPSA_TEST_SEED=n to repeat one)"
	@echo "make mutants      small defects put into the product, each of which a test has to find (ARGS=\"--rooms spsa/report\" for other rooms; tests/README.md)"
	@echo "make proof        three rules tune the bundled engine for hours; resumable (ENGINE=folder of another config.toml; benches/proof/RESULTS.md)"
	@echo "make papers       the published figures, computed again and compared (benches/papers/RESULTS.md)"
	@echo "make bench-simulation  simulated games a second (PEER=path of spsa_simul to be measured beside)"
	@echo "make bench-db          claims and reports a second, direct and by HTTP; looks (benches/database/RESULTS.md)"
	@echo "make bench-runner      games an hour and CPU of the match runner (benches/runner/RESULTS.md; PEER=path of fastchess)"
	@echo "make bench-fleet       what the slots of 1 to 256 simulated workers do (benches/fleet/RESULTS.md)"
	@echo "make bench-information  what a CPU second of games teaches, by book, limits and adjudication (benches/RESULTS.md)"
	@echo "make bench-page      the page of a run in Chromium, response times (benches/RESULTS.md)"
	@echo "make docs         write the tables of docs/configuration.md from the models of the keys"
	@echo "make tutorial    play docs/tutorial.md and write its output into it (some minutes)"
	@echo "make format       let ruff format the code"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 2; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "venv is missing; on Debian and Ubuntu: apt install python3-venv"; exit 2; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing the tuner into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test-installed: pyproject.toml | $(VENV)/bin/python
	@echo "installing the tuner and its test tools into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	@$(BIN)/spsa-master demo $(ARGS)

proof: $(VENV)/.installed
	@$(BIN)/python -m benches.proof $(if $(ENGINE),--engine $(ENGINE)) $(ARGS)

papers: $(VENV)/.installed
	@$(BIN)/python -m benches.papers check $(ARGS)

bench-simulation: $(VENV)/.installed
	@$(BIN)/python -m benches.simulation_speed $(if $(PEER),--peer $(PEER)) $(ARGS)

bench-db: $(VENV)/.installed
	@$(BIN)/python -m benches.database cycles $(ARGS)
	@$(BIN)/python -m benches.database looks

bench-runner: $(VENV)/.installed
	@$(BIN)/python -m benches.runner speed $(if $(PEER),--peer $(PEER) --results benches/runner/RESULTS.md) $(ARGS)

bench-fleet: $(VENV)/.installed
	@$(BIN)/python -m benches.fleet $(ARGS)

bench-page: $(VENV)/.test-installed
	@$(BIN)/python -m benches.page $(ARGS)

bench-information: $(VENV)/.installed
	@$(BIN)/python -m benches.information $(ARGS)

lint: $(VENV)/.test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

engine-test:
	cd engine && cargo test --release --quiet

# Two processes: most tests wait for other processes, and every core of a small machine has work.
PYTEST := $(BIN)/python -m pytest -n 2 --durations=15

test: lint engine-test
	$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(VENV)/.test-installed
	$(PYTEST) -m "slow and not long" $(ARGS)

test-all: test
	$(PYTEST) -m slow $(ARGS)

chaos: $(VENV)/.test-installed
	SPSA_TEST_LONG=1 $(BIN)/python -m pytest tests/db/test_protocol_model.py tests/end_to_end/test_chaos.py \
	  tests/db/test_connection.py tests/history/test_purge.py \
	  tests/worker/test_worker_faulty_engines.py \
	  tests/core/test_text.py tests/worker/test_worker_game.py $(ARGS)

mutants: $(VENV)/.test-installed
	@$(BIN)/python -m tests.mutants $(ARGS)

tutorial: $(VENV)/.test-installed
	PYTHONPATH=tests/support:. $(BIN)/python tests/support/tutorial.py

docs: $(VENV)/.test-installed
	@$(BIN)/python tests/support/configuration_page.py

clean:
	rm -rf $(VENV) engine/target .tuning .mutants_cache
