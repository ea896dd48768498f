# make demo: environment, installation and the main job on a real script.  make test: the whole suite.
PYTHON ?= python3
# Where pip finds packages, if not on PyPI: make test PIP_OPTIONS="--index-url https://mirror/simple"
PIP_OPTIONS ?=
# On a terminal pip shows its progress. Elsewhere it prints only what goes wrong, and a line every ten seconds says
# that the step goes on.
QUIET := $(shell test -t 2 || echo --quiet)
define PATIENTLY
test -t 2 || { (s=0; while sleep 10 >/dev/null 2>&1; do s=$$((s + 10)); echo "    $$s s, and still at it"; done) & \
  trap "kill $$!" EXIT; };
endef
# Four more than there are cores: a test that starts a process or a server mostly waits for it.
# make test WORKERS=0 runs all tests in one process.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 4)))
# More for pytest: make test PYTEST_OPTIONS='-m "not slow"'
PYTEST_OPTIONS ?=
# One process collects the tests, and forks of it run them, file by file.
PARALLEL := -p tests.forks --forks $(WORKERS)
VENV := .venv
# Whoever works in a container has it set, and each process compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Only the tests need the training libraries, so that `make demo` stays quick.
FRAMEWORKS := $(VENV)/.frameworks
EXTRAS := torch,dev
$(FRAMEWORKS): EXTRAS := torch,dev,frameworks
# pip would compile on one core.
COMPILE = $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || :
INPUTS := pyproject.toml constraints.txt CMakeLists.txt $(wildcard advisor/native/src/*)

.PHONY: demo test check docs bench research-check locks sbom clean
.DELETE_ON_ERROR:

$(STAMP): $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "advisor needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo '1/3 creating $(VENV)'
	@$(PATIENTLY) $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install $(QUIET) $(PIP_OPTIONS) --constraint constraints.txt --upgrade pip
	@echo '2/3 installing advisor and torch (several GB with CUDA), which takes minutes'
	@$(PATIENTLY) $(BIN)/python -m pip install $(QUIET) --no-compile $(PIP_OPTIONS) --constraint constraints.txt \
	  --editable '.[$(EXTRAS)]' && { $(COMPILE); }
	@echo $(EXTRAS) >$@

$(FRAMEWORKS): $(STAMP) tests/checkers.txt
	@echo 'installing the libraries that only the tests need'
	@grep -q frameworks $(STAMP) || { $(PATIENTLY) $(BIN)/python -m pip install $(QUIET) --no-compile $(PIP_OPTIONS) \
	  --constraint constraints.txt --editable '.[$(EXTRAS)]' && { $(COMPILE); }; }
	@$(PATIENTLY) $(BIN)/python -m pip install $(QUIET) $(PIP_OPTIONS) --no-deps --upgrade \
	  --target $(VENV)/checkers --requirement tests/checkers.txt
	@touch $@

demo: $(STAMP)
	@echo '3/3 profiling examples/train_resnet50.py and pricing it'
	@echo $(BIN)/advisor recommend examples/train_resnet50.py --epochs 90 --budget 200
	@$(PATIENTLY) $(BIN)/advisor recommend examples/train_resnet50.py --epochs 90 --budget 200

test: $(FRAMEWORKS)
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_OPTIONS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Whether each shipped constant still follows from its data: ../shared beside the checkout, where it is there.
research-check: $(FRAMEWORKS)
	$(BIN)/python -m pytest $(PARALLEL) research/tests $(PYTEST_OPTIONS)

docs: $(STAMP)
	$(BIN)/mkdocs serve

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# What the release installs, with hashes. Needs uv.
locks:
	for name in build release; do \
	  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make locks' \
	    --default-index https://pypi.org/simple --constraint constraints.txt \
	    .github/requirements/$$name.in --output-file .github/requirements/$$name.txt || exit 1; done

# All that an installation brings, as CycloneDX. Needs cyclonedx-bom.
CYCLONEDX ?= cyclonedx-py
sbom:
	@$(PYTHON) -m venv --without-pip --clear build/sbom
	@$(PATIENTLY) $(PYTHON) -m pip --python build/sbom/bin/python install $(QUIET) $(PIP_OPTIONS) \
	  --constraint constraints.txt .
	$(CYCLONEDX) environment --pyproject pyproject.toml --mc-type library --output-reproducible \
	  --output-file build/gpu-advisor.cdx.json build/sbom/bin/python

clean:
	rm -rf $(VENV) build dist
