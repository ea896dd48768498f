# make demo: environment, installation and the main job on a real script.  make test: the whole suite.
PYTHON ?= python3
# Where pip finds packages, if not on PyPI: make test PIP_OPTIONS="--index-url https://mirror/simple"
PIP_OPTIONS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Only the tests need the training libraries, so that `make demo` stays quick.
FRAMEWORKS := $(VENV)/.frameworks
INPUTS := pyproject.toml constraints.txt CMakeLists.txt $(wildcard advisor/native/src/*)

.PHONY: demo test check bench clean
.DELETE_ON_ERROR:

$(STAMP): $(INPUTS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "advisor needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(PIP_OPTIONS) --constraint constraints.txt \
	  --editable '.[torch,dev]'
	touch $@

$(FRAMEWORKS): $(STAMP)
	$(BIN)/python -m pip install --quiet $(PIP_OPTIONS) --constraint constraints.txt \
	  --editable '.[torch,frameworks]'
	touch $@

demo: $(STAMP)
	$(BIN)/advisor recommend examples/train_resnet50.py --epochs 90 --budget 200

test: $(FRAMEWORKS)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(STAMP)
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist
