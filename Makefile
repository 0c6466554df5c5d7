# The commands of the README. Everything is installed into .venv; nothing on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint types unit sanitize bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Rebuilt when the build description or the C++ changes; the Python sources are used where they lie.
$(STAMP): $(BIN)/python pyproject.toml CMakeLists.txt $(wildcard native/*)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/longleaf demo

test: lint types unit sanitize

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/python -m pytest

clean:
	rm -rf $(VENV) build
