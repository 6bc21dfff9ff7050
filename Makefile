# Two commands: `make demo` shows it, `make test` checks all of it. Both set everything up first.
.PHONY: demo test quick check lint types faults bench docs venv
SHELL := /bin/bash
# tests start hundreds of processes: each file is compiled to bytecode once, outside the sources
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache
# with a sourced distribution, what colcon built is sourced on top of it
RUN := $(if $(ROS_DISTRO),source install/local_setup.bash &&)

demo: venv
	$(RUN) .venv/bin/robodyn demo $(ARGS)

# What computes, or runs in lock-step on simulated time, uses all cores, and mypy runs beside it. What
# needs the wall clock (marked real_time) runs last and alone. What fails is run once more, alone and
# in fresh processes: with many processes on a busy machine, a message or a service call may be lost.
PYTEST := $(RUN) .venv/bin/python -m pytest
AGAIN := --last-failed --last-failed-no-failures none
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# half as many again as there are cores, since tests of nodes wait for messages
WORKERS := $(shell echo $$(( ($$(nproc) * 3 + 1) / 2 )))

# the tests of a file share what they started; the longest files come first (test/conftest.py)
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# the files with tests in real time: to collect all the others as well would take seconds
REAL_TIME = $(shell grep -lr --include='test_*.py' 'mark.real_time' test)

test: lint
ifdef ARGS
	.venv/bin/mypy
	$(PYTEST) $(ARGS)
else
	.venv/bin/mypy > .venv/types.txt 2>&1 & types=$$!; \
	$(RUN) $(ONE_THREAD) .venv/bin/python -m pytest $(PARALLEL) -m 'not real_time' || { \
	  echo 'Once more what failed:'; \
	  $(RUN) $(ONE_THREAD) .venv/bin/python -m pytest -m 'not real_time' $(AGAIN); }; \
	tests=$$?; wait $$types; types=$$?; cat .venv/types.txt; exit $$((tests + types))
	$(PYTEST) -m real_time $(REAL_TIME) || { echo 'Once more what failed in real time:'; \
	  $(PYTEST) -m real_time $(REAL_TIME) $(AGAIN); }
endif

# for daily work: no nodes, nothing slow
quick: check
	$(RUN) $(ONE_THREAD) .venv/bin/python -m pytest $(PARALLEL) -m 'not nodes and not slow and not real_time' $(ARGS)

check: lint types

lint: venv
	.venv/bin/ruff check .
	.venv/bin/lint-imports

types: venv
	.venv/bin/mypy

# ten minutes of random faults on the controller and on running nodes (docs/reference/faults.md)
faults: venv
	$(RUN) .venv/bin/python test/faults/campaign.py $(ARGS)

bench: venv
	$(RUN) .venv/bin/python benchmarks/run.py $(ARGS)

# the documentation site, in docs/_build/html; a warning is an error
docs: venv
	$(RUN) .venv/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

venv:
	@tools/set_up.sh
