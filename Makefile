# Every target sets up its own virtual environment with pip alone. Another Python: make test PYTHON=python3.13
PYTHON ?= python3
VENV ?= .venv
PIP_VERSION := 26.3

BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
GPU := $(or $(GPU_PYTHON),$(BIN)/python)
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt --build-constraint constraints.txt
LOCK := $(VENV)-lock

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench bench-peers gpu release-check lock clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile

demo: $(VENV)/.base ## choose size and columns of a real table, write a report (needs the base install only)
	$(BIN)/pairflip demo

test: $(VENV)/.dev $(VENV)/.browser ## run the tests; more of them: make test PYTEST="--slow --gpu"
	@# Those that need a quiet machine come after the others; 5 means that there were none of a kind.
	@$(BIN)/python -m pytest --numprocesses=auto --dist=worksteal -m "not alone and not docs" $(PYTEST); others=$$?; \
	$(BIN)/python -m pytest -m alone $(PYTEST); alone=$$?; \
	test $$others -ne 5 || others=$$alone; test $$alone -ne 5 || alone=$$others; \
	exit $$((others ? others : alone))

lint: $(VENV)/.dev ## check style, formatting, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs $(VENV)/.dev ## build the documentation site in docs/_build/site, check its links, run what it shows
	$(BIN)/python -m sphinx -W --keep-going -q -d docs/_build/doctrees docs docs/_build/site
	$(BIN)/python docs/_ext/check_links.py docs/_build/site
	$(BIN)/python -m pytest --quiet --numprocesses=auto --dist=worksteal -m docs

bench: $(VENV)/.base ## run the benchmarks
	$(BIN)/python -m benchmarks

bench-peers: $(VENV)/.base ## compare with other methods, one thread, and write the table of docs/comparison.md
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m benchmarks peers

gpu: $(if $(GPU_PYTHON),,$(VENV)/.dev) ## check and time the GPU engine where there is a device; which Python: make gpu GPU_PYTHON=python3
	@reason=$$(PYTHONPATH=src $(GPU) -c 'from pairflip.engines.cuda import why_unavailable; print(why_unavailable() or "")') || exit 1; \
	if [ -n "$$reason" ]; then echo "make gpu: skipped: $$reason"; else \
	  PYTHONPATH=src $(GPU) -m pytest tests/gpu/test_cuda_batch.py tests/gpu/test_engine_cuda.py tests/gpu/test_cuda_gone.py tests/gpu/test_prove_cuda.py --gpu && \
	  PYTHONPATH=src $(GPU) -m benchmarks gpu prove; fi

release-check: $(VENV)/.dev ## build wheel and sdist twice, install them with the newest and the oldest dependencies, try them
	$(BIN)/python .ci/release_check.py $(RELEASE_CHECK)

lock: ## write constraints.txt anew (with the oldest Python we support)
	$(PYTHON) -m venv --clear $(LOCK)
	$(LOCK)/bin/python -m pip install --quiet pip==$(PIP_VERSION)
	$(LOCK)/bin/python -m pip install --quiet hatchling editables --editable ".[gpu,dask,files,datatree,publish,sindy]" --group dev --group docs
	{ sed -n '/^#/p' constraints.txt; $(LOCK)/bin/python -m pip freeze --exclude-editable; } > $(LOCK)/new
	mv $(LOCK)/new constraints.txt
	rm -rf $(LOCK)

clean: ## remove the environment, caches and build outputs
	rm -rf $(VENV) $(LOCK) build dist docs/_build docs/examples docs/reference/api .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written when its step has ended well, so an interrupted set-up is simply done again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "pairflip needs Python 3.11 or newer; name one with: make PYTHON=python3.11 (PYTHON is now '$(PYTHON)')." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet pip==$(PIP_VERSION)
	@touch $@

$(VENV)/.base: $(VENV)/.made pyproject.toml constraints.txt
	$(INSTALL) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(INSTALL) --group dev
	@touch $@

$(VENV)/.docs: $(VENV)/.base
	$(INSTALL) --group docs
	@touch $@

# The report is tested in a real browser. Without the rights to install one, those tests are skipped with a reason.
$(VENV)/.browser: | $(VENV)/.made
	@command -v chromium chromium-browser google-chrome >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  echo "installing chromium, for the tests of the report ..." && apt-get -qq update >/dev/null && \
	  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium here: the tests of the report in a browser will be skipped"
	@touch $@
