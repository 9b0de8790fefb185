# Needs Rust, a C compiler, make and Python 3. All else goes into the project folder: target/ and .tools/.
SHELL := /bin/sh
CARGO_DENY_VERSION := 0.20.2
PYTHON := .tools/python
TARGET := $(or $(CARGO_TARGET_DIR),target)
export PYTHONPATH := $(CURDIR)/$(PYTHON)
export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help demo test lint invoke front package setup build reference infra-test

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## one virtual day with the built functions on a local AWS: timeline, checks, target/demo/report.html
	@$(TARGET)/debug/demo

test: build ## every test: rules, laws, field cases, built functions, local AWS, events
	@sh tests/run.sh

lint: ## fmt, clippy and rustdoc with warnings as errors; cargo-deny bans, licences, sources
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
	@sh tests/deny.sh $(CARGO_DENY_VERSION)

invoke: build ## one event file through the built function: make invoke F=wake C=prewarm
	@if [ -z "$(F)" ] || [ -z "$(C)" ]; then echo "usage: make invoke F=wake C=prewarm; cases:"; ls events/*/*.json; exit 2; fi
	@$(TARGET)/debug/invoke $(F) events/$(F)/$(C).json

front: build ## the wake function behind a URL on loopback, with one sleeping node, until Ctrl-C
	@$(TARGET)/debug/front

package: ## release zips for provided.al2023 under target/lambda (cargo-lambda from PyPI)
	@sh tests/package.sh

setup: ## the local AWS's Python packages into .tools/python
	@sh tests/local-aws/install.sh

build: setup
	@echo "building the functions and the tests' tools (the first time: five to eight minutes for the AWS SDK)"
	@cargo build --workspace --bins --locked

reference: ## writes docs/configuration.md, docs/messages.md, docs/beat.md's settings and the decision table again
	@UPDATE=1 cargo test -p reveille --locked --quiet --test reference --test messages
	@UPDATE=1 cargo test -p reveille-beat --locked --quiet settings

infra-test: ## the Terraform modules: fmt, validate, tests with a mocked provider, policy lint, mistakes tried on copies
	@sh tests/infra.sh
