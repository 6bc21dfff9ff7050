# Two commands: `make demo` shows it, `make test` proves it. Both set everything up first.
.PHONY: demo test check bench venv

demo: venv
	.venv/bin/robodyn demo $(ARGS)

test: check
	.venv/bin/python -m pytest $(ARGS)

check: venv
	.venv/bin/ruff check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: venv
	.venv/bin/python benchmarks/run.py $(ARGS)

venv:
	@tools/set_up.sh
