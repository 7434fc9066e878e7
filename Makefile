# What each target does is in CONTRIBUTING.md; .ci/run calls the same ones.
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python
.PHONY: help setup demo test test-slow test-crash test-fuzz test-benchmarks test-docs docs lint bundle perf screenshots lock

help:
	@echo "make setup      install everything that is needed, in .venv and the user's cache"
	@echo "make demo       an agent repairs a real bug with a local model (sets up first)"
	@echo "make test       the fast tests, 3 minutes on two cores"
	@echo "make test-slow  the tests with the model and long runs, half an hour on two cores"
	@echo "make test-crash  kill -9 and full disks at 1,000 random points, and sessions of 5,000 steps, 30 minutes"
	@echo "make test-benchmarks  every instance of the benchmarks whose scorer needs a sandbox, over an hour"
	@echo "make test-fuzz  10,000 random cases at every border, of which test-slow runs 500"
	@echo "make test-docs  the commands of README and docs that need the local model, about an hour"
	@echo "make docs       the documentation as a site, in build/site"
	@echo "make lint       ruff, pyright, structure, generated types, tsc, prettier"
	@echo "make bundle     build and install what sandboxes mount: the bundle and the browser"
	@echo "make perf       measure Handiwork beside two peers, 12 minutes; rewrites docs/performance.md"
	@echo "make screenshots  every page of the web app, light, dark, wide and on a phone: docs/screenshots-out"
	@echo "make lock       resolve the dependencies anew"

setup:
	@bash scripts/setup.sh

demo: setup
	@$(PYTHON) examples/demo/run.py

test: setup
	@scripts/web.sh npm test -- --reporter=dot
	@$(PYTHON) scripts/run_tests.py -n 3

test-slow: setup
	@$(PYTHON) scripts/run_tests.py -vv -m 'slow and not campaign' -n 2 --dist loadfile --durations 25 \
	    --session-timeout 3000

test-crash: setup
	@$(PYTHON) -m pytest -m campaign -s tests/crash tests/session tests/snapshots

test-fuzz: setup
	@HANDIWORK_FUZZ_CASES=10000 $(PYTHON) -m pytest -m slow -n 2 --timeout 600 --durations 10 tests/fuzz

test-benchmarks: setup
	@$(PYTHON) -m pytest -m campaign --durations 0 tests/evals

test-docs: setup
	@$(PYTHON) -m pytest -m campaign --durations 0 tests/docs

docs: setup
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@PATH="$$(scripts/web.sh path)" .venv/bin/pyright
	@$(PYTHON) scripts/check_structure.py
	@scripts/web.sh types --check
	@scripts/web.sh npm lint

bundle: setup
	@bash scripts/bundle.sh

perf: setup
	@$(PYTHON) -m perf --write

screenshots: setup
	@$(PYTHON) scripts/screenshots.py

lock: setup
	.venv/bin/uv pip compile -q --upgrade --generate-hashes --no-header --no-annotate --universal \
	    --python-version 3.11 --all-extras --group dev --group docs --group perf pyproject.toml -o requirements.lock
