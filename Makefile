# The front door: `make` builds build/cameo, `make help` lists the rest.
# SPDX-License-Identifier: Apache-2.0
#
# CMake does the work; this file installs what is missing, picks a preset and runs things.

.DEFAULT_GOAL := build
.NOTPARALLEL:
.SUFFIXES:

DEV ?= 0
FUZZ_SECONDS ?= 60
export DEV FUZZ_SECONDS OPS TEST

PYTHON = $(shell [ -x build/venv/bin/python3 ] && echo build/venv/bin/python3 || echo python3)

help: ## this list
	@echo "make             build the library and build/cameo"
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | sort | \
	    awk -F'\t' '{printf "make %-11s %s\n", $$1, $$2}'
	@echo "settings         DEV=1 warnings are errors; JOBS=N; PREFIX=DIR for install;"
	@echo "                 TEST=REGEX which tests; OPS=NAME,.. only operator cases, of families,"
	@echo "                 files or operators; FUZZ_SECONDS=N for each fuzzer"

build:
	@tools/setup.sh build
	@tools/build.sh release product

demo: build ## train a small network from nothing, in build/demo
	@rm -rf build/demo
	@build/cameo demo --dir build/demo
	@echo; echo "Here cameo is $(CURDIR)/build/cameo; 'make install' puts it on your path."

demo-files: build ## write a small trainable model, describe it, check it, save it unchanged
	@sh tools/demo.sh build/cameo

test: ## what every commit must pass; the last line counts
	@tools/setup.sh test
	@tools/build.sh release tests
	@$(PYTHON) tools/run_tests.py build --without slow

test-slow: ## the tests that take long
	@tools/setup.sh test
	@tools/build.sh release tests
	@$(PYTHON) tools/run_tests.py build --only slow

test-oom: ## allocations made to fail in turn: in unit tests under the address sanitizer, in every subcommand
	@tools/setup.sh test
	@tools/build.sh asan tests
	@$(PYTHON) tools/run_tests.py build/asan --only unit --filter 'test_oom__*'
	@tools/build.sh release product fail_allocation
	@CAMEO=$(CURDIR)/build/cameo TESTS=$(CURDIR)/tests \
	    $(PYTHON) tests/oom/run_commands.py build/oom/fail_allocation.so --all

test-math: ## our exp, log, tanh, sigmoid, erf, atan, sin and cos for every float; takes an hour of processor time
	@tools/setup.sh test
	@tools/build.sh release tests
	@sh tests/unit/every_float.sh build/unit/tensor/test_vector_math

test-parameters: ## what is trained by default, on exported networks: CASES='FOLDER/*', each with a model.onnx
	@tools/setup.sh test
	@tools/build.sh release product
	@$(PYTHON) tests/train/parameters.py check build/cameo $(CASES)

test-exported: ## exported networks trained for some steps, losses as the framework's: CASES='FOLDER/*', see tests/train/exported.py
	@tools/setup.sh test
	@tools/build.sh release product
	@$(PYTHON) tests/train/exported.py build/cameo $(CASES)

test-compiled: ## ONNX's node suite and random graphs through compiled code, half an hour: COMPILED='--pure --match test_conv*'
	@tools/setup.sh compile
	@tools/build.sh release tests
	@$(PYTHON) tools/test_compiled.py build --random 300 $(COMPILED)
	@$(PYTHON) tests/train/check_compiled.py build/cameo tests/models
	@$(PYTHON) tests/targets/check_targets.py build/cameo --suite build/onnx-suite/node --every 40
	@$(PYTHON) tools/hostile_compiled.py build

test-checkpoints: ## other frameworks continue what Cameo wrote, and the other way; installs them: CHECKPOINTS=test_jax
	@tools/setup.sh test
	@tools/setup.sh checkpoints
	@tools/build.sh release product
	@$(PYTHON) tests/checkpoints/run.py build $(CHECKPOINTS)

test-handover: ## what is handed over to other frameworks and comes from them; installs them: HANDOVER='--only suite'
	@tools/setup.sh test
	@tools/setup.sh handover
	@tools/build.sh release product python
	@build/handover-venv/bin/python3 tests/handover/run.py build $(HANDOVER)

test-frontends: ## models that other frameworks export, run and trained; installs them: FRONTENDS='skl2onnx test_keras'
	@tools/setup.sh test
	@tools/setup.sh frontends
	@tools/build.sh release product python
	@$(PYTHON) tools/test_frontends.py build $(FRONTENDS)

test-python: ## the wheel of the Python package, installed into a clean environment: PYTHON_TESTS=test_threads
	@tools/setup.sh python
	@tools/test_python.sh $(PYTHON_TESTS)

test-pythons: ## its wheels under other interpreters, free-threaded ones too: PYTHONS='python3.12 /opt/python3.14t/bin/python3'
	@tools/setup.sh python
	@tools/test_pythons.sh $(PYTHONS)

test-all: ## what takes longer than .ci/run may: slow tests, the thread sanitizer, aarch64, a short fuzzing
	@FUZZ_SECONDS=8 tools/sum_steps.sh test-slow tsan aarch64 fuzz

test-update: ## rewrite the expected output of the command's tests
	@tools/setup.sh test
	@tools/build.sh release product
	@CAMEO=$(CURDIR)/build/cameo TESTS=$(CURDIR)/tests \
	    $(PYTHON) tools/run_cli_tests.py --update tests/cli/*.sh

abi-update: ## write data/abi.list, the list of exported symbols and struct layouts, anew
	@tools/build.sh release product
	@$(PYTHON) tools/abi.py --update

lint: ## format, layers, lone headers, banned functions, generated files current
	@tools/setup.sh dev
	@tools/build.sh release product listers
	@$(PYTHON) tools/lint.py

asan: ## unit, operator, command and suite tests under the address and undefined behaviour sanitizers
	@tools/setup.sh test
	@tools/build.sh asan tests
	@$(PYTHON) tools/run_tests.py build/asan --only unit,ops,cli,suite

tsan: ## the same under the thread sanitizer
	@tools/setup.sh test
	@tools/setup.sh dev
	@tools/build.sh tsan tests
	@$(PYTHON) tools/run_tests.py build/tsan --only unit,ops,cli,suite

aarch64: ## unit tests and a sample of ONNX's node suite on an emulated aarch64
	@tools/setup.sh cross
	@tools/build.sh aarch64 product tests
	@$(PYTHON) tools/run_tests.py build/aarch64 --only unit,sample

fuzz: ## every fuzz target for FUZZ_SECONDS
	@tools/setup.sh dev
	@tools/build.sh fuzz fuzzers
	@$(PYTHON) tools/run_fuzz.py

fuzz-long: ## every fuzz target until nothing new is found, eight processor hours in all runs; writes docs/fuzzing.md
	@tools/setup.sh dev
	@tools/build.sh release product
	@tools/build.sh fuzz fuzzers
	@$(PYTHON) tools/fuzz_seeds.py
	@nice -n 19 $(PYTHON) tools/run_fuzz.py --long

bench: ## speed beside ONNX Runtime and PyTorch, in the same run: BENCH='--threads 1 resnet50'
	@tools/setup.sh bench
	@tools/build.sh release product
	@build/bench-venv/bin/python3 bench/measure.py $(BENCH)
	@$(if $(BENCH),:,build/bench-venv/bin/python3 bench/compiled.py build/cameo build/bench-models)
	@$(if $(BENCH),:,build/bench-venv/bin/python3 bench/compiled.py build/cameo build/bench-models --pure)
	@$(if $(BENCH),:,build/bench-venv/bin/python3 bench/tools.py build/cameo build/bench-models/chains)

bench-parts: ## speed of parts: opening files, cost of a node, planning, forests, ONNX's own networks
	@tools/setup.sh test
	@tools/build.sh release product bench
	@$(PYTHON) bench/run.py

coverage: ## which lines the tests run, by folder
	@tools/setup.sh test
	@tools/build.sh coverage tests
	@find build/coverage -name '*.gcda' -delete
	@$(PYTHON) tools/run_tests.py build/coverage --only unit,cli
	@$(PYTHON) tools/coverage.py build/coverage

gen: ## rewrite the committed files that are generated (data/, docs/operators.md, gradients.md, core-operators.md)
	@tools/setup.sh test
	@$(PYTHON) tools/gen_operators.py
	@tools/build.sh release listers
	@$(PYTHON) tools/gen_operator_docs.py
	@$(PYTHON) tools/gen_gradient_docs.py
	@$(PYTHON) tools/gen_core_docs.py

prose: ## lower data/prose.baseline to the phrases that are left; `make lint` allows no more of them
	@$(PYTHON) tools/prose.py --update

messages: ## list every sentence that users can meet in build/messages.txt, to be read as a whole
	@mkdir -p build
	@$(PYTHON) tools/list_messages.py >build/messages.txt
	@wc -l build/messages.txt

install: ## headers, libraries, command, manual and completions under PREFIX
	@tools/setup.sh build
	@tools/build.sh release product
	@cmake --install build

clean: ## remove build/
	rm -rf build

.PHONY: help build abi-update demo demo-files test test-slow test-oom test-math test-parameters test-exported test-compiled test-checkpoints test-handover test-frontends test-python test-pythons test-all test-update \
	lint asan tsan aarch64 fuzz fuzz-long bench bench-parts coverage gen prose messages install clean
