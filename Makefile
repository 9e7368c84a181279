# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := PIP_BUILD_CONSTRAINT=$(CURDIR)/build-constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Bytecode is kept: both workers and every process that a test starts import the whole package.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --quiet

.PHONY: demo docs test test-all chaos lint types check dist instructions results clean

demo: $(VENV)/plots.installed
	$(BIN)/lloydformer demo --output build/demo.html --force

docs: $(VENV)/docs.installed # the documentation site: open build/site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

test: $(VENV)/test.installed
	$(PYTEST) -m "not long"

test-all: $(VENV)/test.installed
	$(PYTEST)

chaos: $(VENV)/test.installed # concurrent writers, kills, full disks, random kernel problems
	$(PYTEST) tests/chaos --chaos --durations 0

lint: $(VENV)/test.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(shell git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh')

types: $(VENV)/test.installed
	$(BIN)/mypy

check: lint types test

dist: $(VENV)/test.installed # source distribution and wheel, in dist/
	rm -rf dist
	$(BIN)/python -c "from scikit_build_core.build import build_sdist; build_sdist('dist')"
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist dist/*.tar.gz

instructions: # of each native fold for a point; needs valgrind
	$(PYTHON) benchmarks/native/driver.py instructions

results: $(VENV)/test.installed # lists records of measurements that are stale, and makes them again: hours; resumes
	$(BIN)/python benchmarks/records.py --run

clean:
	rm -rf $(VENV) build dist

$(VENV)/%.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --editable ".[$*]"
	touch $@
