# Two commands: `make demo` shows it, `make test` proves it. Both set everything up first.
.PHONY: demo test check bench venv
SHELL := /bin/bash
# with a sourced distribution, what colcon built is sourced on top of it
RUN := $(if $(ROS_DISTRO),source install/local_setup.bash &&)

demo: venv
	$(RUN) .venv/bin/robodyn demo $(ARGS)

# what computes, or runs in lock-step, uses all cores; what keeps time with real nodes runs alone, after it
TIMED := $(patsubst %,test/test_%.py,node_dynamics node_feedforward node_simulator real_time)

test: check
ifdef ARGS
	$(RUN) .venv/bin/python -m pytest $(ARGS)
else
	$(RUN) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python -m pytest -n auto $(TIMED:%=--ignore=%)
	$(RUN) .venv/bin/python -m pytest $(TIMED)
endif

check: venv
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: venv
	$(RUN) .venv/bin/python benchmarks/run.py $(ARGS)

venv:
	@tools/set_up.sh
