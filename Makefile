# The verbs a developer needs; `make help` lists them. CI runs .ci/run.
export GOTOOLCHAIN := go1.27.3+auto

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 10s
BIN         ?= bin/eppctl
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS     := -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse HEAD 2>/dev/null) -X main.date=$(shell git log -1 --format=%cI 2>/dev/null)

# What the end-to-end parts need beside Go: an Envoy, and a python3 with libzmq.
WITH_DEPS = set -e; ENVOY=$$(scripts/envoy.sh); py=$$(scripts/python.sh); \
	export ENVOY PYTHONPATH=$$py$${py:+:}$$PYTHONPATH;

.DEFAULT_GOAL := help
.PHONY: help build deps test race bench fuzz lint gen check demo

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s%s\n", $$1, $$2}' Makefile

build: ## build bin/eppctl, one static file
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/eppctl

deps: ## fetch what tests and demo need: Go modules, Envoy, pyzmq (into .cache/)
	go mod download
	@$(WITH_DEPS) echo "envoy: $$ENVOY"

demo: build ## 4 simulated engines, serve and Envoy under load (KEEP=1 leaves them running)
	@$(WITH_DEPS) $(BIN) sim demo $(if $(KEEP),--keep)

test: ## everything, end to end through a real Envoy and a real libzmq included
	@$(WITH_DEPS) go test ./...
	@go -C bench test ./...

race: ## the same under the race detector
	@$(WITH_DEPS) go test -race ./...

bench: ## print the speed table and write out/bench.json
	@go run ./scripts/benchtab

.PHONY: bench-index bench-index-peers
PEERS_PROFILE ?= release
bench-index: ## the KV index beside its own hash floor, into out/bench-index.json
	@go -C bench run ./index -out $(CURDIR)/out/bench-index.json

bench-index-peers: ## the same traffic through two Rust indexes too (needs cargo 1.95; not in CI)
	@cargo build --quiet --profile $(PEERS_PROFILE) --locked --manifest-path bench/peers/Cargo.toml --target-dir out/cargo
	@go -C bench run ./rounds -peers $(CURDIR)/out/cargo/$(PEERS_PROFILE)/peers -dump $(CURDIR)/out/bench-index.dump \
		-out $(CURDIR)/out/bench-index-peers.json $(PEERS_FLAGS)

fuzz: ## each fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh $(FUZZTIME)

lint: ## gofmt, go vet, staticcheck
	@out=$$(gofmt -l bench cmd internal scripts); test -z "$$out" || { echo "gofmt: $$out"; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...
	go -C bench vet ./...
	cd bench && go run $(STATICCHECK) ./...

gen: ## regenerate man pages, completions and other generated files
	go generate ./...

check: lint test ## what to run before a commit
