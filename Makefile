# Targets only; what they do is in .ci/.
.DEFAULT_GOAL := help
.PHONY: help build test test-race cover fuzz lint fmt generate verify tools kube-assets bench bench-policy demo release tidy

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

build: ## build every program into bin/
	.ci/build

test: ## run every test
	.ci/prepare git patch curl jq openssl python3 containerd runc busybox
	.ci/kube --check
	.ci/test

test-race: ## run every test with the race detector
	.ci/race

cover: ## print test coverage per package
	.ci/prepare git patch curl jq openssl python3 containerd runc busybox
	.ci/kube --check
	.ci/cover

fuzz: ## run each fuzz target for FUZZTIME (default 20s)
	.ci/fuzz

lint: ## check format, go vet, golangci-lint
	.ci/lint

fmt: ## format every Go file
	.ci/tool run gofumpt -w .

generate: ## write generated files anew
	.ci/prepare protoc
	.ci/generate

verify: ## check that generated files are fresh
	.ci/prepare protoc
	.ci/verify

tools: ## build the pinned tools
	.ci/tool path

kube-assets: ## build kubectl, kube-apiserver and etcd for the tests
	.ci/kube

bench: build ## measure agentctl beside a floor, interleaved
	cd bench && go run ./overhead $(BENCHFLAGS)

# The corpora are measured where they are: their licences differ from ours.
CORPORA ?= ../shared/corpora
POLICYFLAGS ?= -run -peers

bench-policy: ## measure decisions on the corpora of shell commands in CORPORA
	@test -e "$(CORPORA)/shell-attacks/attacks.yaml" || { echo 'bench-policy: no corpora in "$(CORPORA)"; next: make bench-policy CORPORA=/path/to/corpora' >&2; exit 2; }
	.ci/build
	cd bench && go run ./policy -corpora "$(abspath $(CORPORA))" $(POLICYFLAGS)

demo: ## run an agent that obeys a hostile text
	.ci/build agentctl agentctl-tools agentctl-sandbox agentctl-entry
	bin/agentctl run -f manifests/hostile --allow-unsandboxed

release: ## build the release VERSION of the commit that is checked out into dist/
	.ci/release "$(VERSION)" $(RELEASEFLAGS)

tidy: ## run go mod tidy in every module
	.ci/tidy
