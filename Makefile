# The commands of the README. Everything is installed into .venv; nothing on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What is installed beside longleaf; `make test EXTRAS=dev,finetune` also tests fine-tuning, which needs PyTorch.
EXTRAS ?= dev
NATIVE := $(shell find native -type f)
MODULES := build/modules
CHOSEN := build/extras

.PHONY: demo test test-browser lint tidy types unit coverage sanitize sanitize-threads peers bench load scale paper clean always

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The list of Python modules, written only when it differs: an installation knows those that were there.
$(MODULES): always
	@mkdir -p $(@D)
	@find src/longleaf -name '*.py' | LC_ALL=C sort > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@

# The extras, likewise.
$(CHOSEN): always
	@mkdir -p $(@D)
	@test "$$(cat $@ 2> /dev/null)" = '$(EXTRAS)' || echo '$(EXTRAS)' > $@

# Built again when the build description, the C++, the list of modules or the extras change; the Python sources
# are used where they lie.
$(STAMP): $(BIN)/python pyproject.toml CMakeLists.txt $(NATIVE) $(MODULES) $(CHOSEN)
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]'
	touch $@

demo: $(STAMP)
	$(BIN)/longleaf demo

test: lint types unit sanitize

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(shell find native -name '*.h' -o -name '*.cpp')

# What clang-tidy finds in native/, by .clang-tidy; it needs the commands of a build.
TIDY := clang-tidy==23.1.4

tidy: $(STAMP)
	$(BIN)/python -m pip install --quiet '$(TIDY)' cmake ninja nanobind
	$(BIN)/cmake -S . -B build/tidy -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
		-DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python -Dnanobind_DIR=$$($(BIN)/python -m nanobind --cmake_dir) > /dev/null
	$(BIN)/clang-tidy -p build/tidy --quiet $(shell find native -name '*.cpp' -not -name kernels.cpp)

types: $(STAMP)
	$(BIN)/mypy

unit: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The same with the lines counted that it runs in this process, by package; processes that tests start are not.
coverage: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile -q --cov --cov-report=json:build/coverage.json
	$(BIN)/python -m tests.helpers.coverage build/coverage.json

# The page in a real browser. `make unit` runs these too where chromium is installed; this installs it.
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

test-browser: $(STAMP)
	command -v chromium || command -v chromium-browser || \
		($(SUDO) apt-get update && $(SUDO) apt-get install -y chromium)
	$(BIN)/python -m pytest tests/server/test_browser.py

# The tests marked native once more, with the address and undefined-behaviour sanitizers in the extension.
CHECKED := .venv-sanitize

$(CHECKED)/.installed: pyproject.toml CMakeLists.txt $(NATIVE) $(MODULES)
	$(PYTHON) -m venv $(CHECKED)
	$(CHECKED)/bin/python -m pip install --quiet --editable '.[test]' \
		-C build-dir=build/sanitize -C cmake.define.LONGLEAF_SANITIZE=address
	touch $@

sanitize: $(CHECKED)/.installed
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 HYPOTHESIS_PROFILE=quick PYTHONMALLOC=malloc \
		$(CHECKED)/bin/python -m pytest -q -n 2 -m native tests

# And with the thread sanitizer, which finds races; not part of `make test`, since it is slow.
THREAD_CHECKED := .venv-sanitize-threads

$(THREAD_CHECKED)/.installed: pyproject.toml CMakeLists.txt $(NATIVE) $(MODULES)
	$(PYTHON) -m venv $(THREAD_CHECKED)
	$(THREAD_CHECKED)/bin/python -m pip install --quiet --editable '.[test]' \
		-C build-dir=build/sanitize-threads -C cmake.define.LONGLEAF_SANITIZE=thread
	touch $@

sanitize-threads: $(THREAD_CHECKED)/.installed
	LD_PRELOAD="$$(gcc -print-file-name=libtsan.so)" TSAN_OPTIONS="halt_on_error=1 exitcode=66 report_signal_unsafe=0" \
	HYPOTHESIS_PROFILE=quick OPENBLAS_NUM_THREADS=1 \
		$(THREAD_CHECKED)/bin/python -m pytest -q -m native tests

# Peers live in environments of their own; PECOS needs NumPy below 2 and a SciPy of that time, and no torch.
.venv-peers/.installed:
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet numpy scipy napkinxc==0.7.2 omikuji
	touch $@

.venv-pecos/.installed:
	$(PYTHON) -m venv .venv-pecos
	.venv-pecos/bin/python -m pip install --quiet 'numpy<2' 'scipy<1.14' scikit-learn
	.venv-pecos/bin/python -m pip install --quiet --no-deps libpecos
	touch $@

.venv-xcolumns/.installed:
	$(PYTHON) -m venv .venv-xcolumns
	.venv-xcolumns/bin/python -m pip install --quiet xcolumns==0.0.2
	touch $@

peers: .venv-peers/.installed .venv-pecos/.installed .venv-xcolumns/.installed

bench: $(STAMP) peers
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.speed.vectorize

# The service under load, beside omikuji in a FastAPI app: a quarter of an hour, and more for
# training the first time. LOAD="--quick" for a look.
.venv-load/.installed:
	$(PYTHON) -m venv .venv-load
	.venv-load/bin/python -m pip install --quiet numpy scipy scikit-learn omikuji fastapi 'uvicorn[standard]'
	touch $@

LOAD ?=
load: $(STAMP) .venv-load/.installed
	$(BIN)/python -m benchmarks.load $(LOAD)

# How cost grows, up to a million labels: hours. What is measured already is kept; LARGEST=70000 for a look.
LARGEST ?= 1000000
scale: $(STAMP)
	$(BIN)/python -m benchmarks.scale --largest $(LARGEST)
	$(BIN)/python -m benchmarks.plot benchmarks/results/scale.json

# The paper's study on every data set that is there; what is measured already is kept. PAPER="--quick" for a look.
PAPER ?=
paper: $(STAMP)
	$(BIN)/python -m benchmarks.paper $(PAPER)

clean:
	rm -rf $(VENV) $(CHECKED) $(THREAD_CHECKED) build
