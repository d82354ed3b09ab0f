# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

# The tests of `dalenius export` start a PostgreSQL server of their own, those of `dalenius report` look at it in
# Chromium; both are skipped where the program is not installed.
POSTGRES := $(firstword $(wildcard /usr/lib/postgresql/*/bin/initdb) $(shell command -v initdb))
CHROMIUM := $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name) 2>/dev/null)))
JAVA := $(shell command -v java 2>/dev/null)
MISSING := $(if $(POSTGRES),,postgresql) $(if $(CHROMIUM),,chromium) $(if $(JAVA),,openjdk-17-jre-headless)

.PHONY: install services demo test test-lowest dist check lint types bench bench-more bench-peers bench-spark fuzz audit sbom coverage docs figures lock clean

install: .venv/.tests  ## everything that the tests need, into .venv

.venv/.base: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps -e .
	touch $@

.venv/.tests: .venv/.base requirements-test.lock
	$(BIN)/pip install --quiet --require-hashes -r requirements-test.lock
	touch $@

services:  ## PostgreSQL, Chromium and Java (for Spark) for the tests, if we are root and have apt
	@for package in $(MISSING); do \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$package; } >/dev/null 2>&1 \
	    || echo "$$package could not be installed: its tests are skipped"; \
	  else echo "$$package is not installed: its tests are skipped"; fi; \
	done

demo: .venv/.base  ## the whole tour, into the folder demo
	rm -rf demo
	$(BIN)/dalenius demo demo

test: .venv/.tests  ## all tests, the slow statistical ones too
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: .venv/.tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.tests
	$(BIN)/mypy

check: lint types test  ## what a change must pass

LOWEST := tests/system tests/promises tests/policy tests/tables tests/question tests/release tests/ask tests/contract \
  tests/mechanisms/bucketize/plan/test_groups.py tests/mechanisms/bucketize/test_sets.py \
  tests/test_publishing.py tests/web tests/serve tests/studio/test_pages.py

test-lowest: .venv-lowest/.lowest  ## the core tests with the oldest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pytest -m "not slow" $(LOWEST)

.venv-lowest/.lowest: requirements-lowest.txt pyproject.toml
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/pip install --quiet -r requirements-lowest.txt pytest pytest-randomly hypothesis
	.venv-lowest/bin/pip install --quiet --no-deps -e .
	touch $@

dist: .venv/.tests  ## wheel and source archive; the same bytes for the same commit, whoever builds them
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -d dist
	sha256sum dist/*

bench: .venv/.tests  ## speed, as ratios in one run; QUICK=--quick has every cell once, up to a million rows
	$(BIN)/python -m bench.startup
	$(BIN)/python -m bench.publish_matrix $(QUICK)
	$(BIN)/python -m bench.ask_speed --demo --queries 500 --raw-queries 100

bench-more: .venv/.tests  ## plans of random histograms, questions, large releases, a hundred million rows
	$(BIN)/python -m bench.plan_scan
	$(BIN)/python -m bench.plan_speed
	$(BIN)/python -m bench.ask_speed
	$(BIN)/python -m bench.large_release
	$(BIN)/python -m bench.publish_speed

bench-spark: .venv/.tests  ## publishing on Spark, as ratios to Spark's own copy in one run
	$(BIN)/python -m bench.spark_speed 1e6 1e7

bench-peers: .venv-peers/.peers  ## the same jobs beside what a user could install instead
	.venv-peers/bin/python -m bench.peers

.venv-peers/.peers: bench/peers.txt pyproject.toml
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet -r bench/peers.txt
	.venv-peers/bin/pip install --quiet -e .  # after them: pycanon's command line wants an older typer
	touch $@

FUZZ_CASES ?= 100000
fuzz: .venv/.tests  ## damaged input of every kind by the hundred thousand; findings are added to the corpus
	for kind in manifest table bytes policy sql source service; do \
	  $(BIN)/python -m tests.fuzz $$kind --cases $(FUZZ_CASES) --keep tests/fuzz/corpus.jsonl || exit 1; done

audit: .venv/.tests  ## known vulnerabilities of the pinned versions; needs the network
	@$(BIN)/pip-audit -r requirements.lock --disable-pip --require-hashes --strict || { echo \
	  "Not audited, or not clean. \"Dependency not found on PyPI\" above means that advisories could not be looked up:" \
	  "pip-audit needs the package index itself, not a mirror, which has none."; exit 1; }

sbom: .venv/.tests  ## a bill of materials beside the wheel
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --mc-type library --output-reproducible \
	  -o dist/dalenius.cdx.json

coverage: .venv/.tests  ## how often intervals hold the truth: the tables of docs/coverage.md
	$(BIN)/python -m bench.coverage --keep bench/results/coverage --into docs/coverage.md
	$(BIN)/python -m bench.coverage --part real
	$(BIN)/python -m bench.judged_coverage --first 5000

docs: .venv/.tests  ## the documentation site, into the folder site
	PYTHONPATH=src NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

figures: .venv/.tests  ## the pictures of the documentation
	$(BIN)/python docs/figures.py

lock: .venv/.tests  ## pin the newest versions that pyproject.toml allows
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --allow-unsafe \
	  --strip-extras --extra files --extra plots --extra postgres --extra serve --extra studio -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --generate-hashes --no-emit-index-url --no-emit-find-links --allow-unsafe \
	  --strip-extras --extra test -o requirements-test.lock pyproject.toml

clean:
	rm -rf .venv .venv-lowest .venv-peers demo dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
