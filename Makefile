# The verbs a developer needs; `make help` lists them. CI runs .ci/run.
export GOTOOLCHAIN := go1.27.3+auto
# A profile makes the compiler build all packages anew. Only what is released, and what
# is timed as released, is built by cmd/eppctl/default.pgo.
export GOFLAGS := $(GOFLAGS) -pgo=off
# With vectors of simd/archsimd, where the processor has them (tokenizer/split/bitmap_simd.go):
# what is released, timed and tested. Without this all is built and gives the same, slower.
export GOEXPERIMENT := simd
PGO := -pgo=$(CURDIR)/cmd/eppctl/default.pgo

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 10s
BIN         ?= bin/eppctl
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS     := -X main.version=$(VERSION) -X main.commit=$(shell git rev-parse HEAD 2>/dev/null) -X main.date=$(shell git log -1 --format=%cI 2>/dev/null)

# What the end-to-end parts need beside Go: an Envoy, a tmux, and a python3 with libzmq.
WITH_DEPS = set -e; ENVOY=$$(scripts/envoy.sh); TMUX_BIN=$$(scripts/tmux.sh); py=$$(scripts/python.sh); tok=$$(scripts/tokenizers.sh); hub=$$(scripts/huggingface-hub.sh); \
	export ENVOY TMUX_BIN PYTHONPATH=$$py$${py:+:}$$tok:$$hub:$$PYTHONPATH;

# What tests run beside those, from Debian: PROGRAM:PACKAGE.
PROGRAMS := buildah:buildah zsh:zsh fish:fish mandoc:mandoc groff:groff-base /usr/share/bash-completion/bash_completion:bash-completion
WITH_PROGRAMS = for p in $(PROGRAMS); do scripts/debian.sh $${p%:*} $${p\#*:} >/dev/null || exit; done; scripts/powershell-grammar.sh >/dev/null || exit; scripts/promtool.sh >/dev/null || exit;

.DEFAULT_GOAL := help
.PHONY: help build deps test race bench fuzz lint gen check demo

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-24s%s\n", $$1, $$2}' Makefile

build: ## build bin/eppctl, one static file
	CGO_ENABLED=0 go build $(PGO) -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/eppctl

.PHONY: image image-context
PLATFORM ?= linux/$(shell go env GOARCH)
CONTEXT  ?= out/image
IMAGE    ?= eppctl:$(VERSION)
LATEST   ?= eppctl:latest
image: image-context ## build the container image IMAGE, also called LATEST, for PLATFORM, with buildah (apt-get, as root)
	@buildah=$$(scripts/debian.sh buildah) && "$$buildah" build --platform $(PLATFORM) --tag $(IMAGE) --tag $(LATEST) --file Dockerfile $(CONTEXT)
	@echo "image: $(IMAGE), $(LATEST)"

image-context: ## lay out what Dockerfile copies into CONTEXT, for another builder
	@mkdir -p $(CONTEXT)/out
	go run ./scripts/roots > $(CONTEXT)/out/ca-certificates.crt
	@GOOS=linux GOARCH=$(notdir $(PLATFORM)) $(MAKE) --no-print-directory build BIN=$(CONTEXT)/$(PLATFORM)/eppctl

# A snapshot of a clone without a remote is to goreleaser one without a commit: git is
# told of one, for this run alone. Nobody asks it for anything.
WITH_ORIGIN = git ls-remote --get-url >/dev/null 2>&1 || \
	export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://github.com/eppctl/eppctl;

.PHONY: release-check
release-check: ## build all of a release, publish nothing, and install the packages into roots of their own (as root; some minutes; not in CI)
	@set -e; git rev-parse --verify HEAD >/dev/null; $(WITH_ORIGIN) \
		tools=$$(scripts/goreleaser.sh); export PATH="$$tools:$$PATH"; \
		goreleaser check; \
		goreleaser release --snapshot --clean --skip=publish,docker; \
		go vet -tags packages ./internal/release; \
		go test -count=1 -tags packages -run 'TestDeb|TestRPM|TestArchives' ./internal/release

deps: ## fetch what tests and demo need: Go modules, Envoy, pyzmq, Jinja2, promtool (into .cache/), tmux and others (apt-get, as root)
	go mod download
	@$(WITH_PROGRAMS) $(WITH_DEPS) echo "envoy: $$ENVOY"

demo: build ## 4 simulated engines, serve and Envoy under load (KEEP=1 leaves them running)
	@$(WITH_DEPS) $(BIN) sim demo $(if $(KEEP),--keep)

# Packages start in the order given. The longest first: last, one of them would leave the
# other cores idle. cmd/eppctl comes before e2e, which builds it too.
LONGEST := ./cmd/eppctl ./internal/e2e ./internal/core/tokenizer/native ./internal/serve ./internal/core/index ./internal/inspect/top

test: ## everything, end to end through a real Envoy and a real libzmq included
	@$(WITH_PROGRAMS) $(WITH_DEPS) go test $(LONGEST) ./...
	@go -C bench test ./...
	@GOEXPERIMENT= go test ./internal/core/tokenizer/split

.PHONY: test-engine
test-engine: build ## a real vLLM or SGLang behind serve: predicted against reported tokens (EPPCTL_ENGINE_ENV=DIR; not in CI)
	@scripts/test-engine.sh

# The detector makes minutes of the longest: where others want the cores too, more than the
# 10 that a package has by default.
race: ## the same under the race detector
	@$(WITH_PROGRAMS) $(WITH_DEPS) go test -race -timeout 20m $(LONGEST) ./...

bench: ## print the speed table and write out/bench.json
	@go run ./scripts/benchtab

.PHONY: bench-decide
bench-decide: ## a whole decision beside a bare loop over its rows, into out/bench-decide.json
	@go run ./scripts/benchtab -decide

.PHONY: bench-feed
bench-feed: ## a KV event from socket to index beside libzmq's C subscriber, into out/bench-feed.json
	@set -e; py=$$(scripts/python.sh); export PYTHONPATH=$$py$${py:+:}$$PYTHONPATH; \
		go -C bench run ./feed -out $(CURDIR)/out/bench-feed.json $(FEED_FLAGS)

.PHONY: bench-feed-profile
bench-feed-profile: ## where a KV event of 2 kB spends its time, into docs/profiles
	@mkdir -p out docs/profiles
	@go -C bench build -o $(CURDIR)/out/bench-feed ./feed
	@set -e; py=$$(scripts/python.sh); export PYTHONPATH=$$py$${py:+:}$$PYTHONPATH; \
		{ echo "make bench-feed-profile"; echo; out/bench-feed -only 2kB -scale 2 -profile out/feed-2kB.pprof; echo; \
		go tool pprof -top -cum -nodecount=60 out/bench-feed out/feed-2kB.pprof; } > docs/profiles/feed-2kB.txt

.PHONY: bench-index bench-index-peers bench-index-profile
PEERS_PROFILE ?= release
bench-index: ## the KV index beside its own hash floor, into out/bench-index.json
	@go -C bench run ./index -out $(CURDIR)/out/bench-index.json

bench-index-peers: ## the same traffic through two Rust indexes too (needs cargo 1.95; not in CI)
	@cargo build --quiet --profile $(PEERS_PROFILE) --locked --manifest-path bench/peers/Cargo.toml --target-dir out/cargo
	@go -C bench run ./rounds -peers $(CURDIR)/out/cargo/$(PEERS_PROFILE)/peers -dump $(CURDIR)/out/bench-index.dump \
		-out $(CURDIR)/out/bench-index-peers.json $(PEERS_FLAGS)

PROFILES ?= load mix mix_single decode hot_1024
bench-index-profile: ## where the index spends its time, per phase, into docs/profiles
	@mkdir -p out docs/profiles
	@go -C bench build -o $(CURDIR)/out/profile ./profile
	@for p in $(PROFILES); do out/profile -phase $$p -out out/index-$$p.pprof && \
		{ echo "make bench-index-profile PROFILES=$$p"; echo; \
		go tool pprof -top -nodecount=30 -tagfocus phase=$$p -focus 'phase.rate$$|Index..Lookup$$|Purge$$' out/profile out/index-$$p.pprof; } \
		> docs/profiles/index-$$p.txt; done

.PHONY: bench-tokenizer test-tokenizer-fetched
bench-tokenizer: ## the native tokenizer beside HF tokenizers and fastokens, into out/bench-tokenizer.json
	@scripts/tokenizer-data.sh models corpus
	@PYTHONPATH=$$(scripts/tokenizers.sh) go run $(PGO) ./scripts/tokbench $(TOKBENCH_FLAGS)
	@go test -run '^$$' -bench Parallel ./internal/core/tokenizer/native

test-tokenizer-fetched: ## the tokenizer's tests over vocabularies that may not be committed too
	@set -e; data=$$(scripts/tokenizer-data.sh models); tok=$$(scripts/tokenizers.sh); \
	export PYTHONPATH=$$tok TOKENIZER_MODELS=$$data/models; go test -timeout 60m ./internal/core/tokenizer/...; go test -run TestHarmonyIDs ./internal/core/encode

.PHONY: test-unicode-tables
test-unicode-tables: ## the committed Unicode tables are what the Unicode data make (npm)
	@set -e; dir=$$(mktemp -d); trap 'rm -r "$$dir"' EXIT; scripts/unitab.sh "$$dir"; \
		for f in internal/core/tokenizer/unitab/*tables.go; do cmp "$$f" "$$dir/$${f##*/}"; done

.PHONY: recordings
recordings: build ## drive explain, top and tap beside the demo, into docs/img: recordings and pictures
	@scripts/recordings.sh

.PHONY: pgo
pgo: ## profile what a prompt goes through anew, into cmd/eppctl/default.pgo, which the release is built by (a minute)
	@scripts/pgo.sh

.PHONY: eval
eval: ## policies on the simulated fleet beside each other, into out/eval.json, out/eval.md and docs/eval.md (some minutes)
	@go run ./scripts/evaltab $(EVAL_FLAGS)

.PHONY: eval-others
eval-others: ## the same on workloads that no constant was read off, into out/eval-others.md and docs/eval.md
	@go run ./scripts/evaltab -others $(EVAL_FLAGS)

fuzz: ## each fuzz target for FUZZTIME (10s)
	scripts/fuzz.sh $(FUZZTIME)

lint: ## gofmt, go vet, staticcheck
	@out=$$(gofmt -l bench cmd internal scripts); test -z "$$out" || { echo "gofmt: $$out"; exit 1; }
	go vet ./...
	GOARCH=arm64 go vet ./internal/core/tokenizer/split ./internal/core/tokenizer/native
	GOEXPERIMENT= go vet ./internal/core/tokenizer/split ./internal/core/tokenizer/native
	go run $(STATICCHECK) ./...
	go -C bench vet ./...
	cd bench && go run $(STATICCHECK) ./...

gen: ## regenerate man pages, completions and other generated files
	go generate ./...

check: lint test ## what to run before a commit
