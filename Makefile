# The one list of commands. Every target builds what it needs in .venv.
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Small networks are fastest on one thread, and the cores may be shared.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export PYTHONUNBUFFERED := 1

DEMO_RUN := runs/demo
DEMO_DEALS ?= 4000
RUN ?= runs/deck_of_spies
BENCH_STAMP := $(VENV)/.bench-installed
BENCH_ARGS ?=
TEST_ARGS ?= -n 2 --dist loadfile

.PHONY: help install demo test check format train judge judge-skirmish ladder bench strength ablation optimality wheel-test clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(STAMP)  ## build .venv with all that demo, tests and checks need

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		$(PIP_ARGS) -e '.[dev]'
	touch $@

demo: install  ## train a small agent, then judge it beside the shipped one and the bots (minutes)
	rm -rf $(DEMO_RUN)
	$(BIN)/python train.py --config configs/demo.yaml --run_dir $(DEMO_RUN)
	$(BIN)/python evaluate.py --agents ppo=$(DEMO_RUN) ppo greedy random --deals $(DEMO_DEALS)

test: install  ## run the tests
	$(BIN)/python -m pytest $(TEST_ARGS)

check: install  ## formatting, lint, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

format: install  ## format the code and fix what lint can fix
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

train: install  ## train the main recipe from scratch (under an hour on 2 cores) into RUN=...
	$(BIN)/python train.py --config configs/deck_of_spies.yaml --run_dir $(RUN)

judge: install  ## the measured tables of the README: every agent on held-out deals (minutes)
	$(BIN)/python evaluate.py --agents linear greedy random --deals 20000
	$(BIN)/python evaluate.py --agents afterstate ppo ppo:objective=keys ppo:objective=perfect --deals 100000
	$(BIN)/python evaluate.py --agents rollout --deals 2000
	$(BIN)/python evaluate.py --agents search --deals 10000

judge-skirmish: install  ## the measured tables of Skirmish, and what learners gain on its agents (hours)
	$(BIN)/python evaluate.py --game skirmish --agents ppo intrigue rank high random --deals 20000
	$(BIN)/python evaluate.py --game skirmish --agents ppo matrix --deals 2000
	$(BIN)/python evaluate.py --game skirmish --agents ppo smmcts --deals 2000
	$(BIN)/python evaluate.py --game skirmish --num-players 3 --agents ppo intrigue rank high random --deals 5000
	$(BIN)/python evaluate.py --game skirmish --num-players 4 --agents ppo intrigue rank high random --deals 5000
	$(BIN)/python -m benchmarks.best_response --steps 4000000 --sees-hands
	$(BIN)/python -m benchmarks.best_response --steps 3000000
	$(BIN)/python -m benchmarks.best_response --steps 3000000 --agent ppo:mode=greedy

ladder: install  ## play the shipped results of all agents anew (half an hour)
	$(BIN)/python -m benchmarks.ladder

$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		$(PIP_ARGS) -e '.[bench]'
	touch $@

bench: $(BENCH_STAMP)  ## speed beside other libraries, in one run (some 20 minutes)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

strength: install  ## wall time to a 90 % win rate beside MaskablePPO's defaults (some 2 hours)
	$(BIN)/python -m benchmarks.strength

ablation: install  ## variants of the recipe under equal processor time (hours)
	$(BIN)/python -m benchmarks.ablation

optimality: install  ## exact losses of agents on small decks (minutes)
	$(BIN)/python -m benchmarks.optimality

wheel-test: install  ## the wheel alone, in an empty environment, runs the README's quick start
	$(BIN)/python -m pytest tests/test_wheel.py

clean:  ## remove the virtual environment and what builds leave behind
	rm -rf $(VENV) build dist *.egg-info
