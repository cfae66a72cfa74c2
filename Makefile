# What a target needs is installed into .venv when it is first asked for: the core for the demo, all for the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RELEASE := $(CURDIR)/.venv-release
MAKEFLAGS += --jobs=2
# What Python compiles is kept, whatever the environment says: every worker of pytest would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-quick lint typecheck pytest test-lowest release-check try-wheel try-guides docs pictures bench bench-quick bench-methods bench-kernels bench-first bench-page bench-many bench-proofs bench-exact bench-hard bench-rules bench-players clean help

help:  ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/core  ## install the core, then choose a test from start to end
	$(BIN)/rposst demo

# Tests come first: they begin with compiling the kernels, and style and types are checked beside that.
test: pytest lint typecheck  ## install all, then check style, types and behaviour

lint: $(VENV)/installed  ## check style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/installed  ## check types
	$(BIN)/mypy

# Some tests wait, for a browser or for other processes: one worker more than there are cores uses the time. Still more
# would not pay: every worker imports and collects all tests for itself.
WORKERS = $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Matrices in tests are small, and threads of linear algebra that wait for each other take time from other workers.
pytest test-quick: export OPENBLAS_NUM_THREADS = 1

pytest: $(VENV)/installed  ## run the tests, on all cores
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

test-quick: $(VENV)/installed  ## run the tests that take no time, for the edit loop
	RPOSST_EXAMPLES=quick $(BIN)/pytest --numprocesses auto --dist worksteal -m "not slow and not browser" --quiet

bench: $(VENV)/installed  ## run every backend over a grid, refit auto's table, and write benchmarks/README.md
	$(BIN)/python -m benchmarks.grid
	$(BIN)/python -m benchmarks.grid --fit
	$(BIN)/python -m benchmarks.report

bench-quick: $(VENV)/installed  ## a dozen problems of the grid, in about a minute
	$(BIN)/python -m benchmarks.grid --quick --out benchmarks/grid-quick.csv

bench-methods: $(VENV)/installed  ## time the reference method and the convex programs
	$(BIN)/python -m benchmarks.regret_matching
	$(BIN)/python -m benchmarks.formulations

# Compared with the last run on this machine, if there was one: twice as slow is a failure.
bench-kernels: $(VENV)/installed  ## time the hot kernels, and compare with the last time
	$(BIN)/pytest benchmarks/test_kernels.py --benchmark-enable --benchmark-only --benchmark-autosave \
		$(if $(wildcard .benchmarks/*/*.json),--benchmark-compare --benchmark-compare-fail=median:100%)

bench-first: $(VENV)/installed  ## time a stranger's first run: `make bench-first REVISIONS="v1.0 HEAD"` compares
	$(BIN)/python -m benchmarks.first_run $(REVISIONS)

bench-page: $(VENV)/installed  ## time a browser that opens a large report
	PYTHONPATH=tests $(BIN)/python -m benchmarks.large_page

bench-many: $(VENV)/installed  ## thirty of two thousand cases: local search against a MILP solver
	$(BIN)/python -m benchmarks.many_cases

bench-proofs: $(VENV)/installed  ## time the checker of certificates beside the solver that makes them
	$(BIN)/python -m benchmarks.proofs

bench-exact: $(VENV)/installed  ## time the exact solver and MILP solvers, and write benchmarks/README.md
	$(BIN)/python -m benchmarks.exact

bench-rules: $(VENV)/installed  ## time the exact solver and MILP solvers where there are a budget or quotas
	$(BIN)/python -m benchmarks.rules

bench-players: $(VENV)/installed  ## rounds and seconds of the game's players to a proved gap, and write benchmarks/README.md
	$(BIN)/python -m benchmarks.players

bench-hard: $(VENV)/installed  ## sixty hard problems, a minute each for exact and MILP solvers; it goes on where it was stopped
	$(BIN)/python -m benchmarks.hard
	$(BIN)/python -m benchmarks.hard --report

# Without evaluation harnesses: what they require is newer than our lowest, of rich for instance.
test-lowest:  ## run the tests with the lowest versions of all dependencies
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct --editable '.[all]'
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python hypothesis latex2mathml marimo-base 'mkdocs<2' mkdocs-material 'mkdocstrings[python]' nbformat polars pytest pytest-benchmark pytest-xdist python-sat pyyaml selenium
	.venv-lowest/bin/pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --ignore tests/test_real_harnesses.py

# The theme has an opinion on MkDocs 2, which it would print at every build.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/installed  ## build the documentation site into the folder site, without a network
	$(BIN)/mkdocs build --strict

pictures: $(VENV)/installed  ## make all pictures of documents anew: tutorial, notebook and its page, terminal, report, explorer
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_notebook.py
	$(BIN)/python docs/make_terminal.py
	PYTHONPATH=tests $(BIN)/python docs/make_screenshot.py

# `make release-check PYTHONS="python3.11 python3.12"` tries the wheel on each of these.
PYTHONS ?= $(PYTHON)
release-check: export PYTHONPATH :=
release-check: $(VENV)/installed  ## build the distributions, look into them, and run the wheel in an empty environment
	$(BIN)/python -m pip install --quiet --group release
	rm -rf dist $(RELEASE)
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python .ci/check_distributions.py dist
	for python in $(PYTHONS); do $(MAKE) --no-print-directory try-wheel PYTHON=$$python || exit 1; done

# It makes an environment of its own, as the pages say, and takes nothing from the developers'.
try-guides:  ## install as the pages say into a new environment, and follow five tasks of the guides there
	PYTHONPATH=tests $(PYTHON) .ci/try_guides.py

# It runs in an empty folder outside the checkout, so that its own files are what runs.
try-wheel:
	$(PYTHON) -m venv --clear $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet dist/*.whl
	elsewhere=$$(mktemp -d) && trap 'rm -rf "$$elsewhere"' EXIT && cd "$$elsewhere" && \
		$(RELEASE)/bin/python -c 'import formulations, rposst_opt, sys; \
			assert all(m.__file__.startswith(sys.prefix) for m in (formulations, rposst_opt))' && \
		$(RELEASE)/bin/python --version && $(RELEASE)/bin/rposst --version && \
		$(RELEASE)/bin/rposst demo && \
		$(RELEASE)/bin/rposst sample --out results.csv --new-out new_models.csv && \
		$(RELEASE)/bin/rposst solve results.csv --size 4 --out test.json && \
		$(RELEASE)/bin/rposst score test.json new_models.csv

# Compiling all of SciPy, pandas and others takes as long as the rest of the installation, and the demo needs little of it.
$(VENV)/core: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rposst-opt needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	@touch $@

# Here all is compiled, for pytest takes warnings for errors, and compiling a package may raise one.
$(VENV)/installed: $(VENV)/core
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group dev
	@$(BIN)/python -m compileall -q -j 0 $(VENV)/lib > /dev/null 2>&1 || true # some have templates that are no Python
	@touch $@

clean:  ## remove the environments and caches
	rm -rf .venv .venv-lowest .venv-release .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
