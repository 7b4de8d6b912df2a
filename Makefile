# The words of this project; `make help` lists them. CI says the same ones.
# SETUP=:           do not look for Debian packages
# ARGS="…"          for `make run`: options of `sluice run`
# TESTS="unit page" for test, asan, tsan: which kinds of unit, e2e, page
# FUZZ_SECONDS=60   for `make fuzz`: per target;  FUZZ="a b": only these
# IN=build          for `make conformance`: whose binary
# PREFIX=/usr/local for install, uninstall; also DESTDIR=…

SETUP ?= tools/setup
TESTS ?= unit e2e page
FUZZ ?= $(basename $(notdir $(wildcard tests/fuzz/*.cpp)))
FUZZ_SECONDS ?= 60
IN ?= build
PREFIX ?= /usr/local
export FUZZ_SECONDS DESTDIR PREFIX

# Ninja spreads the work; a status line for people, silence for logs.
ninja = cmake --build $1 -j $(shell nproc) -- $(if $(MAKE_TERMOUT),,--quiet)

.NOTPARALLEL:
.PHONY: all run test check format asan tsan fuzz bench conformance install uninstall package clean help

all: setup-build build/build.ninja  ## build build/sluice (the default)
	@$(call ninja,build) sluice

run: all  ## build it and run it in the foreground; ARGS="--listen 127.0.0.1:8888"
	@exec build/sluice run $(ARGS)

test: setup-build setup-test build/build.ninja  ## unit tests, then real clients through the built proxy
	@$(call ninja,build)
	@tools/test build $(TESTS)

check: setup-build setup-check build/build.ninja  ## format, include rule, clock rule, clang-tidy
	@$(call ninja,build) build.ninja
	@tools/check

format: setup-check  ## let clang-format have its way
	@find policy store proxy tests packaging -name '*.h' -o -name '*.cpp' | xargs clang-format -i

asan: setup-asan
asan tsan: %: setup-build setup-test build-%/build.ninja  ## the tests under address+undefined, or thread, sanitizer
	@$(call ninja,build-$@)
	@tools/test build-$@ $(TESTS)

fuzz: setup-build setup-asan build-asan/build.ninja  ## every fuzz target for FUZZ_SECONDS (60), in the build of `asan`
	@$(if $(FUZZ),$(call ninja,build-asan) $(FUZZ:%=fuzz_%))
	@tools/fuzz $(FUZZ)

bench: all setup-bench  ## decisions, idle connections and a soak
	@$(call ninja,build) bench_policy bench_tls
	@if [ -x tests/bench/run ]; then tests/bench/run --sluice build/sluice; \
	else echo "bench: there are no benchmarks yet, skipped"; fi

conformance: setup-build setup-test  ## the shared conformance suite, where ../shared is
	@$(MAKE) -s $(IN)/build.ninja
	@$(call ninja,$(IN)) sluice
	@tools/conformance $(IN)/sluice

install: setup-build build/build.ninja  ## program, manual, completions, units and policies to DESTDIR and PREFIX
	@$(call ninja,build) sluice manual
	@packaging/install install

uninstall:  ## remove what install put there, except changed configuration and state
	@packaging/install uninstall

package: setup-build setup-package build/build.ninja  ## a Debian package: build/sluice_VERSION_ARCH.deb
	@$(call ninja,build) sluice manual
	@packaging/deb

clean:  ## remove every build
	@rm -rf build build-debug build-asan build-tsan

help:  ## this list
	@sed -nE 's/^([a-z]+( [a-z]+)*):.*  ## (.*)/\1|\3/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r word what; do printf '  make %-12s %s\n' "$$word" "$$what"; done
	@sed -nE 's/^# ([A-Z_]+=.*)/  \1/p' $(MAKEFILE_LIST)

setup-%:
	@$(SETUP) $*

# --fresh: a directory configured by another generator, or half way, is configured anew.
build/build.ninja: CMakePresets.json
	@cmake --preset release --fresh -G Ninja >/dev/null && touch $@
build-%/build.ninja: CMakePresets.json
	@cmake --preset $* --fresh -G Ninja >/dev/null && touch $@
