# Two commands: `make demo` shows it, `make test` proves it. Both set everything up first.
.PHONY: demo test check bench venv
SHELL := /bin/bash
# with a sourced distribution, what colcon built is sourced on top of it
RUN := $(if $(ROS_DISTRO),source install/local_setup.bash &&)

demo: venv
	$(RUN) .venv/bin/robodyn demo $(ARGS)

test: check
	$(RUN) .venv/bin/python -m pytest $(ARGS)

check: venv
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: venv
	$(RUN) .venv/bin/python benchmarks/run.py $(ARGS)

venv:
	@tools/set_up.sh
