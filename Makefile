# `make demo` and `make test` need nothing but make and a Python of at least 3.11.

VENV  := .venv
STAMP := $(VENV)/.installed

# Compiled programs are kept between runs; the tests spend most of their first minutes in the compiler.
# NumPyro orders the fields of a distribution by their hashes, so the programs are the same only if the hashes are.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.cache/jax
export PYTHONHASHSEED ?= 0

.PHONY: demo test test-all paper docs lint release-check clean

demo: $(STAMP)
	$(VENV)/bin/crossfade demo

test: lint
	$(VENV)/bin/pytest -q -n 2 --dist loadfile --durations 25 --durations-min 3

test-all: lint
	$(VENV)/bin/pytest -q -n 2 --dist worksteal -m "" --durations 40 --durations-min 20

# Every figure and table of the paper, in short runs; the paper's own grid: crossfade paper all --full
paper: $(STAMP)
	$(VENV)/bin/crossfade paper all --quick --workers 2

# The manual, into site/. Its tools are an extra of their own: nothing else needs them.
docs: $(STAMP)-docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build
	$(VENV)/bin/python docs/offline.py site

lint: $(STAMP)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

# Wheel and sdist in clean environments, with the highest and the lowest versions of what they need: some ten minutes.
release-check: $(STAMP)
	$(VENV)/bin/python tools/release_check.py

# A name may exist and still not run (version managers leave such shims), so each one is tried.
$(STAMP): pyproject.toml constraints.txt
	@set -eu; \
	if [ ! -x $(VENV)/bin/python ]; then \
	  for python in python3.13 python3.12 python3.11 python3 none; do \
	    if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi; \
	  done; \
	  if [ $$python = none ]; then \
	    echo "crossfade needs Python 3.11 or newer, with venv and pip; none of python3.13, python3.12," \
	         "python3.11 and python3 on the PATH is one. Install it and run make again." >&2; exit 1; \
	  fi; \
	  echo "Creating $(VENV) with $$($$python --version)"; \
	  $$python -m venv $(VENV); \
	fi
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(STAMP)-docs: $(STAMP)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) .cache build dist site .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
