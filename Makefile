# Model Fleet: `make help` lists the targets. Everything is installed into .venv and built into a per-user
# cache; nothing is installed on the machine.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
PROFILE ?= full
NAME ?= dev
PYTEST_ARGS ?=
IMAGE ?= ghcr.io/modelfleet/modelfleet:0.1.0
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
CLUSTER := $(BIN)/python -m hack.cluster

##@ Develop

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "; print "usage: make TARGET [PROFILE=full|core] [NAME=dev]"} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "installing the locked dependencies into .venv: nothing more is said for about a minute"
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: install
install: .venv/.installed ## Create .venv from the lock (hashes checked) and install modelfleet into it

.PHONY: check
check: install ## Formatting, lint, types, import layers, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/modelfleet crds --check --output manifests/crd

.PHONY: format
format: install ## Format and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: manifests
manifests: install ## Generate manifests/crd from the types in modelfleet/api
	$(BIN)/modelfleet crds --output manifests/crd

.PHONY: lock
lock: ## Renew the locks from pyproject.toml (needs uv)
	$(LOCK) --all-extras pyproject.toml -o requirements.lock
	$(LOCK) --extra agents --extra slack --extra insight pyproject.toml -o requirements.image.lock
	echo 'hatchling>=1.27' | $(LOCK) - -o requirements.build.lock

##@ Test

.PHONY: test
test: install ## Unit and contract tests; the latter against a real API server, built on first use
	$(BIN)/pytest $(PYTEST_ARGS)

.PHONY: test-unit
test-unit: install ## The tests that need no API server (seconds)
	$(BIN)/pytest test/unit $(PYTEST_ARGS)

.PHONY: test-contract
test-contract: install ## The tests against a real API server and etcd
	$(BIN)/pytest test/contract $(PYTEST_ARGS)

.PHONY: oracles
oracles: install ## Measure idle and restart writes, and schema verdicts; reports in build/reports
	$(BIN)/pytest test/contract/test_idle.py test/contract/test_schema.py $(PYTEST_ARGS)

.PHONY: e2e
e2e: install ## Check the cluster of `make up` (another: E2E_KUBECONFIG=path) from outside, deletion included
	@kubeconfig="$${E2E_KUBECONFIG:-$$($(CLUSTER) kubeconfig --name $(NAME))}"; \
	  echo "testing the cluster of $$kubeconfig"; \
	  KUBECONFIG="$$kubeconfig" $(BIN)/pytest e2e $(PYTEST_ARGS)

##@ Local cluster

.PHONY: up
up: install ## Start a local cluster with the controller and a sample (root: a real node; else KWOK)
	@$(CLUSTER) up --profile $(PROFILE) --name $(NAME)

.PHONY: down
down: ## Stop the local cluster; its state stays for the next `make up`
	@[ ! -x $(BIN)/python ] || $(CLUSTER) down --name $(NAME)

.PHONY: clean
clean: ## Stop the local cluster and forget its state; built programs stay in the cache
	@[ ! -x $(BIN)/python ] || $(CLUSTER) clean --name $(NAME)

.PHONY: kubeconfig
kubeconfig: install ## Print the path of the local cluster's kubeconfig
	@$(CLUSTER) kubeconfig --name $(NAME)

.PHONY: status
status: install ## What of the local cluster is running, and where its logs are
	@$(CLUSTER) status --name $(NAME)

.PHONY: tools
tools: install ## Build all programs of the local cluster now (cold: about 30 minutes on 2 cores)
	@$(CLUSTER) build

##@ Ship

.PHONY: image
image: ## Build the container image (needs docker or podman)
	$${CONTAINER_TOOL:-docker} build -f Containerfile -t $(IMAGE) .
