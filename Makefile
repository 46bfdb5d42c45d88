# The two commands: `make run` exports a real model and compares it with PyTorch; `make test` runs all tests.
.DEFAULT_GOAL := help
.PHONY: help setup configure build test coverage fuzz run bench format tidy install clean

# Programs of the virtual environment (cmake, ninja, python) come first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
PRESET ?= release
BUILD := $(if $(filter release,$(PRESET)),build,build-$(PRESET))
PREFIX ?= $(CURDIR)/out/install
SOURCES = $(shell git ls-files '*.cpp' '*.h')

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo 'Variables: PRESET=release|debug|asan, QUICK=1 (tests without the slow ones), PREFIX=DIR (install),'
	@echo '           ARGS="--peer --write" (bench), ARGS=--resume (coverage), SECONDS=300 and SEED=1 (fuzz)'

.venv/setup.stamp: $(wildcard requirements/*.txt) scripts/debian-packages.txt scripts/setup.sh
	scripts/setup.sh

setup: .venv/setup.stamp  ## install Debian packages and pinned wheels; instant when nothing changed

configure: setup
	cmake --preset $(PRESET)

build: configure  ## build the library, the command line, examples and tests
	cmake --build $(BUILD)

test: build  ## build, then run the C++ tests and the Python tests
	ctest --test-dir $(BUILD) --output-on-failure -j2
	TRANSPORTERS_BUILD='$(CURDIR)/$(BUILD)' python -m pytest -n 2 --dist worksteal $(if $(QUICK),-m 'not slow')

# Long. ARGS goes to run.py: --resume, --only REGEX, --modes onnx-static. Fails when a case that passed before fails.
coverage: build  ## export every architecture's tiny model, verify, write docs/coverage.md
	TRANSPORTERS_BUILD='$(CURDIR)/$(BUILD)' python tests/coverage/run.py $(ARGS)
	python tests/coverage/report.py
	python tests/coverage/report.py --check

# Long: SECONDS for each reader. Another SEED gives other inputs. ctest runs two seconds of each.
fuzz: configure  ## give damaged files to the readers, under sanitizers, for SECONDS=300 each
	cmake --build $(BUILD) --target fuzz_readers
	$(BUILD)/tests/fuzz/fuzz_readers --seconds $(or $(SECONDS),300) --seed $(or $(SEED),1)

run: build  ## export a real sentence-embedding model to ONNX, run it, compare with eager PyTorch
	TRANSPORTERS_BUILD='$(CURDIR)/$(BUILD)' python scripts/run_minilm.py

install: build  ## install headers, library, command line and CMake package into PREFIX
	cmake --install $(BUILD) --prefix '$(PREFIX)'

bench: build  ## compare export and run times with transformers' own exporters
	TRANSPORTERS_BUILD='$(CURDIR)/$(BUILD)' python benchmarks/run.py $(ARGS)

format: setup  ## format the sources (clang-format and ruff, of the wheels in requirements/format.txt)
	python -m pip install --quiet --disable-pip-version-check --requirement requirements/format.txt
	clang-format -i $(SOURCES)
	ruff format python tests benchmarks examples scripts

tidy: configure  ## check the C++ sources (clang-tidy)
	clang-tidy -p $(BUILD) --quiet $(filter %.cpp,$(SOURCES))

clean:  ## remove builds and outputs, keep .venv
	rm -rf build build-debug build-asan out
