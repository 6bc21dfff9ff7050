# Two commands: `make demo` shows it, `make test` checks all of it. Both set everything up first.
.PHONY: demo test quick check faults bench docs venv
SHELL := /bin/bash
# tests start hundreds of processes: each file is compiled to bytecode once, outside the sources
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache
# with a sourced distribution, what colcon built is sourced on top of it
RUN := $(if $(ROS_DISTRO),source install/local_setup.bash &&)

demo: venv
	$(RUN) .venv/bin/robodyn demo $(ARGS)

# What computes, or runs in lock-step on simulated time, uses all cores. What needs the wall clock
# (marked real_time) runs last and alone. What fails is run once more, alone and in fresh processes:
# with many processes on a busy machine, a message or a service call may be lost.
PYTEST := $(RUN) .venv/bin/python -m pytest
AGAIN := --last-failed --last-failed-no-failures none
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# half as many again as there are cores, since tests of nodes wait for messages
WORKERS := $(shell echo $$(( ($$(nproc) * 3 + 1) / 2 )))

# the files with tests in real time: to collect all the others as well would take seconds
REAL_TIME = $(shell grep -lr --include='test_*.py' 'mark.real_time' test)

test: check
ifdef ARGS
	$(PYTEST) $(ARGS)
else
	$(RUN) $(ONE_THREAD) .venv/bin/python -m pytest -n $(WORKERS) --dist worksteal -m 'not real_time' || { \
	  echo 'Once more what failed:'; \
	  $(RUN) $(ONE_THREAD) .venv/bin/python -m pytest -m 'not real_time' $(AGAIN); }
	$(PYTEST) -m real_time $(REAL_TIME) || { echo 'Once more what failed in real time:'; \
	  $(PYTEST) -m real_time $(REAL_TIME) $(AGAIN); }
endif

# for daily work: no nodes, nothing slow
quick: check
	$(RUN) $(ONE_THREAD) .venv/bin/python -m pytest -n $(WORKERS) --dist worksteal -m 'not nodes and not slow and not real_time' $(ARGS)

check: venv
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

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
