# Needs Rust, a C compiler, make and Python 3. All else goes into the project folder: target/ and .tools/.
SHELL := /bin/sh
CARGO_DENY_VERSION := 0.20.2
CARGO_MUTANTS_VERSION := 27.1.0
CARGO_FUZZ_VERSION := 0.13.2
PYTHON := .tools/python
TARGET := $(or $(CARGO_TARGET_DIR),target)
export PYTHONPATH := $(CURDIR)/$(PYTHON)
export PYTHONDONTWRITEBYTECODE := 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-web soak soak-local model fuzz mutants infra-test plan-figures bench lint invoke front package setup build reference wiring

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## one virtual day with the built functions on a local AWS: timeline, checks, target/demo/report.html; KEEP=1 lets it be asked
	@$(TARGET)/debug/demo $(if $(KEEP),--keep)

test: build ## every test: rules, laws, field cases, built functions, local AWS, events
	@sh tests/run.sh

test-web: build ## docs/openapi.yaml against the running function, the examples, the waiting page in Chromium
	@sh tests/web.sh

soak: ## random days with faults in memory: make soak SEEDS=200; one again, with its timeline: make soak SEED=17
	@cargo build -p reveille-soak --profile soak --locked --quiet
	@$(TARGET)/soak/soak --out $(TARGET)/soak-days $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),50))

model: ## the model check with more that goes wrong: minutes, with progress; each scenario's states and bounds
	cargo test -p reveille --locked --profile model --test model -- --ignored --nocapture

lint: ## fmt, clippy and rustdoc with warnings as errors; cargo-deny bans, licences, sources
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
	@sh tests/tool.sh cargo-deny $(CARGO_DENY_VERSION)
	@# Advisories need a database from outside and are left to a machine that has one: cargo deny check advisories.
	.tools/cargo/bin/cargo-deny --log-level error check bans licenses sources

mutants: ## every mutant of decide/ and run/ against the core's tests: target/mutants/missed.txt (an hour; not in CI)
	@sh tests/tool.sh cargo-mutants $(CARGO_MUTANTS_VERSION)
	@python3 tests/mutants.py .tools/cargo/bin/cargo-mutants

invoke: build ## one event file through the built function: make invoke F=wake C=prewarm
	@if [ -z "$(F)" ] || [ -z "$(C)" ]; then echo "usage: make invoke F=wake C=prewarm; cases:"; ls events/*/*.json; exit 2; fi
	@$(TARGET)/debug/invoke $(F) events/$(F)/$(C).json

soak-local: build ## random days with faults, by the built functions on the local AWS: make soak-local SEEDS=5, or SEED=17
	@$(TARGET)/debug/soak_local $(if $(SEED),--seed $(SEED),--seeds $(or $(SEEDS),5)) $(if $(HOURS),--hours $(HOURS))

front: build ## the wake function behind a URL on loopback, with one sleeping node, until Ctrl-C
	@$(TARGET)/debug/front

fuzz: ## every fuzz target for SECONDS (600) each, or one: make fuzz T=lines_json SECONDS=60 (needs a nightly)
	@sh tests/fuzz.sh $(CARGO_FUZZ_VERSION) $(or $(SECONDS),600) $(T)

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

plan-figures: ## writes the tables of docs/planner.md again, from the traces in the project (a minute or two)
	@UPDATE=1 cargo test -p reveille-plan --locked --quiet --test figures

bench: build package ## what a wake, a tick and a log batch cost, beside Python: target/bench/results.json, docs/performance.md (half an hour from a clean clone; not in CI)
	@cargo build -p reveille-bench --release --locked --quiet
	@$(TARGET)/debug/bench --counted $(TARGET)/release/counted --runs $(or $(RUNS),15) --docs

infra-test: build ## the Terraform modules: mocked tests, policy lint, mistakes tried on copies; then applied to the local AWS
	@sh tests/infra.sh

wiring: build ## the controller's Terraform on MiniStack, in real time: log lines, rules and the URL fire (3 minutes; not in CI)
	@sh tests/wiring.sh $(TARGET)/debug
