# Every command of the project. `make help` lists them.
#
# Nothing outside this folder is changed: Python packages go to .venv/, everything else that is built or
# fetched goes to target/. PYTHON=… chooses the interpreter that .venv/ is made with.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
NATIVE := python/stockade/_native.abi3.so
# CI must build what was committed; a developer who adds a dependency may let cargo write Cargo.lock.
LOCKED := $(if $(CI),--locked)
PIP := $(PY) -m pip --disable-pip-version-check --no-input --require-virtualenv install --quiet

# rustup puts cargo where a shell that was open before doesn't look.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin
# One interpreter for maturin, clippy and cargo doc: else each would build PyO3 anew.
export PYO3_PYTHON := $(CURDIR)/$(PY)
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

RUST_FILES := Cargo.toml $(wildcard Cargo.lock) $(shell find rust -type f -not -name '*.md' 2>/dev/null)
SERVERS := target/servers/.installed
FAULTS := target/faults/stockade/_native.abi3.so

# A virtual environment knows its own path: a folder that was moved or copied gets a new one.
ifneq ($(shell cat $(VENV)/.folder 2>/dev/null),$(CURDIR))
.PHONY: $(VENV)/.folder
endif

.PHONY: help
help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1 /p' $(MAKEFILE_LIST) | while read -r name text; do printf '  make %-18s %s\n' "$$name" "$$text"; done

# ---- set up and build

.PHONY: setup
setup: $(VENV)/.requirements ## make .venv with the pinned development packages

$(VENV)/.folder:
	@tools/prerequisites python "$(PYTHON)"
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	@printf '%s' '$(CURDIR)' > $@

$(VENV)/.requirements: requirements-dev.txt $(VENV)/.folder
	$(PIP) -r requirements-dev.txt
	@touch $@

.PHONY: build
build: $(NATIVE) ## build the extension in release mode into .venv

$(NATIVE): $(RUST_FILES) pyproject.toml $(VENV)/.requirements
	@tools/prerequisites rust
	$(VENV)/bin/maturin develop --release --quiet $(LOCKED)
	@touch $@

# The same package with switches that make a step fail on purpose, for tests that run a host of their own.
$(FAULTS): $(NATIVE)
	@mkdir -p target/faults/stockade
	PYO3_BUILD_EXTENSION_MODULE=1 cargo build --quiet --release $(LOCKED) --package stockade-python --features faults --target-dir target/faults/build
	@cp target/faults/build/release/lib_native.[sd][oy]* $@

.PHONY: faults
faults: $(FAULTS) # the package with those switches, in target/faults
	@ln -sf $(CURDIR)/python/stockade/*.py $(CURDIR)/python/stockade/_cli target/faults/stockade/

.PHONY: servers
servers: $(SERVERS) ## install the real servers that the demo and the tests start

$(SERVERS): tests/support/servers.py tests/support/node.py tests/support/package.json tests/support/package-lock.json tests/support/requirements-servers.txt $(VENV)/.requirements
	$(PY) -m tests.support.servers
	@touch $@

# ---- use

.PHONY: demo
demo: build servers ## start real servers, good and bad, and watch what happens
	@$(PY) -m examples.demo

.PHONY: bench
bench: build servers ## measure, and compare with the MCP SDK's own transport
	cargo bench $(LOCKED) --package stockade
	$(PY) -m benches

.PHONY: soak
soak: build servers faults ## the tests that take minutes
	$(PY) -m pytest -m soak

.PHONY: wheel
wheel: build ## build the wheel for manylinux_2_28 and try it in a fresh environment without Rust
	$(PIP) -r requirements-wheel.txt
	$(PY) tools/wheel.py

# ---- check

.PHONY: test
test: lint types test-rust test-sdk test-sdk-versions test-python ## every check that a clean checkout must pass

.PHONY: lint
lint: setup ## formatting and lints
	@tools/prerequisites lint
	cargo fmt --all --check
	cargo clippy --quiet $(LOCKED) --workspace --all-targets --all-features -- -D warnings
	tools/check-supervisor
	$(PY) -m ruff format --check
	$(PY) -m ruff check

.PHONY: format
format: setup ## format everything
	cargo fmt --all
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

.PHONY: types
types: build ## strict types, the completeness of the public API, and the stub of the native module
	$(PY) -m pyright
	PYTHONPATH=python $(PY) -m pyright --verifytypes stockade --ignoreexternal
	MYPYPATH=python $(PY) -m mypy.stubtest stockade._native --allowlist tests/typing/stubtest-allowlist.txt

.PHONY: test-rust
test-rust: setup ## the Rust tests, documentation and examples
	cargo test $(LOCKED) --workspace --all-features
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet $(LOCKED) --workspace --no-deps --all-features
	@for example in rust/stockade/examples/*.rs; do \
		name=$$(basename "$$example" .rs); echo "cargo run --example $$name"; \
		cargo run --quiet $(LOCKED) --package stockade --example "$$name" </dev/null || exit 1; \
	done

.PHONY: test-python
test-python: build servers faults ## the Python tests, README and docs included
	$(PY) -m pytest

.PHONY: test-sdk
test-sdk: build ## the MCP SDK's own stdio tests over our transport
	$(PY) tests/sdk/run.py

.PHONY: check-macos
check-macos: ## check the Rust code for macOS: types and lints, without a Mac
	tools/check-macos

.PHONY: test-sdk-versions
test-sdk-versions: build ## the transport tests on each supported MCP SDK
	$(PY) tests/sdk/versions.py

# ---- keep

PIN := target/uv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.10 --no-annotate --custom-compile-command 'make requirements'

.PHONY: requirements
requirements: setup ## pin the development packages anew from pyproject.toml
	$(PY) -m venv target/uv && target/uv/bin/pip install --quiet uv==0.13.9
	$(PIN) --group develop -o requirements-dev.txt
	$(PIN) --group wheel -o requirements-wheel.txt
	$(PIN) --group servers -o tests/support/requirements-servers.txt

.PHONY: clean
clean: ## remove everything that was built or fetched
	rm -rf $(VENV) target python/stockade/_native*.so .hypothesis .pytest_cache .ruff_cache .mypy_cache
	find python tests benches examples tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
