# strata. `make help` lists what can be made.

SHELL := /bin/bash
CARGO ?= cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
STRATA := $(TARGET_DIR)/release/strata
PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
KINDS ?=
FUZZ_SECONDS ?= 60

BIN_DIR = $(DESTDIR)$(PREFIX)/bin
SHARE_DIR = $(DESTDIR)$(PREFIX)/share

.NOTPARALLEL:
.PHONY: help build run test documents setup-tests fmt-check clippy unit-tests deny docs-check bench bench-verdict fuzz miri install uninstall package clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'
	@echo
	@echo '  PREFIX=$(PREFIX)  DESTDIR=$(DESTDIR)  CARGO_TARGET_DIR=$(TARGET_DIR)  ARGS="$(ARGS)"'

build: ## Build the release binary
	$(CARGO) build --release --locked

run: ## Build strata quickly (profile first) and measure this machine (ARGS="--quick" for the 10 s version)
	$(CARGO) build --profile first --locked -p strata
	$(TARGET_DIR)/first/strata stack $(ARGS)
	@echo 'make run: built with the profile "first", which takes a third of the time; "make build" optimizes all of strata, and its layers are faster'

test: setup-tests fmt-check clippy unit-tests documents docs-check deny ## Everything that must be green before a commit
	@echo 'make test: all green'

setup-tests:
	scripts/setup-tests.sh

fmt-check:
	$(CARGO) fmt --all --check

clippy:
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

documents: ## Every command of README and docs as it stands there, on a directory for a machine: minutes (STRATA_DOCUMENTS=docs/object.md)
	STRATA_DOCUMENTS=$${STRATA_DOCUMENTS:-all} $(CARGO) test --locked --workspace --test command documents

unit-tests:
	CARGO=$(CARGO) scripts/unit-tests.sh

docs-check:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

deny:
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
	    echo 'cargo-deny: skipped, it is not installed (cargo install cargo-deny --locked)'; \
	else \
	    set -ex; \
	    $(CARGO) deny check --hide-inclusion-graph bans licenses sources; \
	fi

advisories: ## Known holes in dependencies; fetches the advisory database over the network
	$(CARGO) deny check advisories

# Parts with unsafe code that need no kernel: buffers, the store's memory, index and copies, and what workers share with the collector.
MIRI = MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=3 $(CARGO) +nightly miri test --locked --lib

miri: ## Unsafe code under Miri (rustup toolchain install nightly -c miri -c rust-src)
	@$(CARGO) +nightly miri --version >/dev/null 2>&1 || \
	    { echo 'make miri: Miri is missing: rustup toolchain install nightly -c miri -c rust-src' >&2; exit 1; }
	$(MIRI) -p driver -- arena:: findings:: polled::
	$(MIRI) -p vos -- table:: copy:: memory::tests::records
	$(MIRI) -p runner -- marks::

bench: build ## Micro-benchmarks, then the comparison with fio (ARGS="--case null")
	$(CARGO) bench --workspace --locked
	bench/compare.py --strata $(STRATA) $(ARGS)

bench-verdict: build ## Ten runs of strata stack, and one beside a busy neighbour: the same verdict (ARGS="--runs 3 --quick"); known bottlenecks are named (root)
	bench/verdict.py $(STRATA) --neighbour $(ARGS)
	bench/bottlenecks.py $(STRATA)

fuzz: ## Every fuzz target for FUZZ_SECONDS (60)
	scripts/fuzz.sh $(FUZZ_SECONDS)

install: build ## Install binary, interception library, man pages and completions below PREFIX
	scripts/install.sh $(TARGET_DIR)/release $(DESTDIR)$(PREFIX)

uninstall: ## Remove what install put there
	rm -f $(BIN_DIR)/strata $(DESTDIR)$(PREFIX)/lib/libstrata_intercept.so $(SHARE_DIR)/man/man1/strata.1 \
	    $(SHARE_DIR)/man/man1/strata-*.1 $(SHARE_DIR)/bash-completion/completions/strata \
	    $(SHARE_DIR)/zsh/site-functions/_strata $(SHARE_DIR)/fish/vendor_completions.d/strata.fish

package: ## A .deb, an .rpm, a tarball and a container image for glibc 2.27 or newer, in packages/ (KINDS="deb tar")
	scripts/portable.sh $(CARGO) build --release --locked
	scripts/package.sh $(TARGET_DIR)/release packages $(KINDS)

clean: ## Remove what was built
	$(CARGO) clean
	rm -rf fuzz/target
