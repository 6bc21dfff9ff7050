# Two commands: `make demo` shows it, `make test` proves it. Both set everything up first.
.PHONY: demo test check bench venv
SHELL := /bin/bash
# with a sourced distribution, what colcon built is sourced on top of it
RUN := $(if $(ROS_DISTRO),source install/local_setup.bash &&)

demo: venv
	$(RUN) .venv/bin/robodyn demo $(ARGS)

# what computes, or runs in lock-step, uses all cores; what keeps time with real nodes runs alone, after it
NODES := $(wildcard test/test_node_*.py) test/test_real_time.py test/test_cli.py

test: check
ifdef ARGS
	$(RUN) .venv/bin/python -m pytest $(ARGS)
else
	$(RUN) OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python -m pytest -n auto $(NODES:%=--ignore=%)
	$(RUN) .venv/bin/python -m pytest $(NODES)
endif

check: venv
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: venv
	$(RUN) .venv/bin/python benchmarks/run.py $(ARGS)

venv:
	@tools/set_up.sh
