# The front of the build. `make help` lists the targets.
#
#   build/release   what ships: LTO and hardening; linked into build/bin
#   build/debug     -O0 -g                        (make build BUILD=debug)
#   build/asan      AddressSanitizer + UBSan, for the tests
#   build/tsan      ThreadSanitizer, for what runs threads
#   build/fuzz      libFuzzer programs, clang

BUILD  ?= release
WERROR ?= true
PREFIX ?= /usr/local
DESTDIR ?=

export PATH := /usr/sbin:/sbin:$(PATH)

FLAGS_release = --buildtype=release -Db_lto=true -Ddebug=true
FLAGS_debug   = --buildtype=debug
# A sanitized build compiles in half the time with -O1 and, as meson.build says, line numbers alone.
SANITIZED     = -Doptimization=1 -Ddebug=false -Db_lundef=false
FLAGS_asan    = $(SANITIZED) -Db_sanitize=address,undefined
FLAGS_tsan    = $(SANITIZED) -Db_sanitize=thread
FLAGS_fuzz    = $(SANITIZED) -Db_sanitize=address,undefined -Dfuzzers=true
ENV_fuzz      = CC=clang

.DEFAULT_GOAL := build
.PHONY: help deps build check test test-long lint format bench generate up down install clean FORCE

help: ## what each target does
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

deps: ## install the Debian packages that are missing
	@tools/deps

# Configures a build folder, and again when the options are others than last time: WERROR=false after
# a build that failed, or another PREFIX to install below. The rest ninja does by itself.
OPTIONS = $(FLAGS_$*) -Dwerror=$(WERROR) --prefix=$(PREFIX)
build/%/build.ninja: build/%.options | deps
	@log=$$($(ENV_$*) meson setup $$([ ! -e $@ ] || echo --reconfigure) $(@D) $(OPTIONS)) || \
	    { printf '%s\n' "$$log"; exit 1; }

.PRECIOUS: build/%.options
build/%.options: FORCE
	@mkdir -p $(@D)
	@echo '$(OPTIONS)' | cmp -s - $@ || echo '$(OPTIONS)' >$@

build: deps build/$(BUILD)/build.ninja ## build every program into build/bin
	@ninja -C build/$(BUILD) --quiet
	@mkdir -p build/bin && for program in build/$(BUILD)/cmd/orlop*; do \
	    [ ! -f $$program ] || [ ! -x $$program ] || ln -sf ../../$$program build/bin/; done

check: deps ## what takes two minutes in a debug build; last line: N passed, N failed
	@tools/test --check

test: build ## every suite that fits in a few minutes; last line: N passed, N failed
	@tools/test

test-long: build build/fuzz/build.ninja ## make test, and each fuzzer for a minute
	@tools/test --long

lint: build ## clang-format, clang-tidy, cppcheck, layers, file sizes
	@tools/lint

format: ## rewrite the sources in the project's style
	@git ls-files '*.c' '*.h' | xargs clang-format -i

generate: build ## write again what is generated: CRDs, reference pages, man pages
	@tools/generate

bench: build ## ratios against peers, measured in one run
	@tools/deps tools/packages-bench.txt
	@tests/bench/run

up: build ## start the whole system on this machine
	@build/bin/orlop up --nodes 3 --sparse-disks 3x4Gi --vg-disks 1x4Gi

down: build ## stop it
	@build/bin/orlop down

install: build ## install below PREFIX (DESTDIR is honoured)
	@DESTDIR='$(DESTDIR)' meson install -C build/$(BUILD) --no-rebuild --quiet

clean: ## remove everything that was built
	rm -rf build
