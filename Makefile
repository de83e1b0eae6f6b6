# Everything here needs Go 1.26 and make, and downloads nothing but Go modules. `make help` lists the targets.
BIN        := bin/conformance
REPORT_DIR ?= conformance-report
VERSIONS   ?= v1.37.1
FUZZ_RUNS  ?= 200000

.PHONY: api ci nightly differential prose help conformance build test lab lab-proxy lab-stays lab-surroundings page candidates-kine kind lab-repeat selftest selftest-complete reports site readers verify generate fuzz bench measure lint cross release clean

## conformance: build, judge the reference, and say where the reports are
conformance: build
	$(BIN) run --report-dir $(REPORT_DIR)

## build: build the program, bin/conformance
# Without cgo the program is static, as pods need it. It carries the agent alone for this machine's processors.
build:
	@CGO_ENABLED=0 hack/agent.sh $$(go env GOARCH) -- go build -o $(BIN) ./cmd/conformance

## test: run unit tests, and all suites on the reference
test: build
	go test -timeout 30m ./... # the limit is for tests that hang: a busy machine takes long
	cd docs/examples/allocator && go test ./...
	$(BIN) run --report-dir $(REPORT_DIR)/reference

## lab: judge the real API server of each of VERSIONS
# It builds the servers from Go modules the first time, unless they were fetched.
lab: build
	for v in $(VERSIONS); do $(BIN) run --tier lab --suite allocation --suite apischema --kubernetes-version $$v --report-dir $(REPORT_DIR)/lab-$$v || exit $$?; done

## lab-proxy: judge the real kube-proxy in each of PROXY_MODES
# It needs iptables and nftables on the machine.
PROXY_MODES ?= iptables nftables
lab-proxy: build
	for m in $(PROXY_MODES); do $(BIN) run --tier lab --suite proxy --proxy-mode $$m --report-dir $(REPORT_DIR)/lab-$$m || exit $$?; done

## lab-stays: test a lab that stays up (needs iptables)
# It judges the lab again and again, kills runs, and ends proxies.
lab-stays: build
	go test -timeout 60m -count=1 -tags lab ./internal/lab ./internal/lab/standing ./cmd/conformance -run 'Real|Stay|ServerRefuses'

## lab-surroundings: compare proxy verdicts in each of SURROUNDINGS
# It runs the proxy suite in PROXY_MODE, and fails if a verdict differs.
SURROUNDINGS ?= silent,resetting,accepting
lab-surroundings: build
	go run ./hack/labrepeat -each surroundings=$(SURROUNDINGS) $(BIN) run --tier lab --suite proxy --proxy-mode $(PROXY_MODE)

## reports: verify the bundles in reports/, and write their index
reports: build
	$(BIN) report index reports

## site: make the website of reports/ in SITE
SITE ?= site
site: build
	$(BIN) report site reports --out $(SITE)

## page: test pages and website in a browser (needs Chromium and npm)
page: build
	hack/page.sh $(REPORT_DIR)/pages

## readers: read reports with other programs (needs Python's junitparser)
readers: build
	hack/readers.sh $(REPORT_DIR)/readers

## candidates-kine: judge the API server on kine and SQLite (needs a C compiler)
# It runs allocation and apischema with KINE_FLAGS, and fails on any other deviation than on etcd.
KINE_FLAGS ?=
candidates-kine:
	REPORT_DIR=$(REPORT_DIR)/candidates hack/candidates/kine/run.sh $(KINE_FLAGS)

## kind: judge kind clusters of SERVICE_CIDRS, or of the ranges that the specification names (needs Docker)
# It runs all suites on nodes of NODE_IMAGE, or of kind's own image.
SERVICE_CIDRS ?=
NODE_IMAGE    ?=
kind: build
	$(BIN) run --tier kind $(addprefix --service-cidr=,$(SERVICE_CIDRS)) --node-image=$(NODE_IMAGE) --report-dir $(REPORT_DIR)/kind

## lab-repeat: repeat a lab run RUNS times, and compare the verdicts
# It runs SUITES in PROXY_MODE.
RUNS       ?= 50
SUITES     ?= allocation,apischema
PROXY_MODE ?= iptables
lab-repeat: build
	go run ./hack/labrepeat -n $(RUNS) $(BIN) run --tier lab --suite $(SUITES) --proxy-mode $(PROXY_MODE)

## soak: repeat all suites on the lab RUNS times under STRESSES in turn, and compare the verdicts
# Needs root for a small disk. It shows both evidences of a verdict that changes, and what each run left.
STRESSES ?= none,processors,memory,worker,disk
soak: build
	go run ./hack/labrepeat -n $(RUNS) -stress $(STRESSES) $(BIN) run --tier lab --proxy-mode $(PROXY_MODE)

## selftest: run the checks that a fault can change, for every fault
selftest: build
	$(BIN) selftest --report-dir $(REPORT_DIR)/selftest

## selftest-complete: run every check against every fault
# It names each check that a fault changed without having seemed to reach it.
selftest-complete: build
	$(BIN) selftest --complete --report-dir $(REPORT_DIR)/selftest-complete

## verify: verify that catalogue, checks, faults and generated files agree
verify: build
	go vet -tags lab ./... # the tests of real programs, too
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go test ./framework/spec
	$(BIN) verify docs/specification.md docs/differential.md

## generate: write ID constants, check names, docs/specification.md, docs/differential.md and the pages of reports/
generate:
	go generate ./framework/spec
	$(MAKE) build
	$(BIN) verify --write docs/specification.md docs/differential.md
	$(BIN) report index reports

## api: write what the library exports to docs/api.txt
api:
	go run ./hack/apilist >docs/api.txt.new && mv docs/api.txt.new docs/api.txt

## fuzz: run every fuzz target with FUZZ_RUNS inputs
fuzz:
	./hack/fuzz.sh $(FUZZ_RUNS)

## bench: compare the reference allocator with Kubernetes' own
bench: build
	cd bench && go run . allocators

## measure: measure RUNS (default: those that need no Docker) and write docs/performance.md
measure: build
	cd bench && go run . runs -count $(or $(COUNT),3) $(RUNS) && go run . servers && go run . page

## prose: run the prose linter on documents, texts of requirements and the help of commands
prose: build
	hack/prose.sh

## ci: run what CI runs on a change (.ci/run --list tells the steps)
ci:
	.ci/run

## differential: compare the reference with real components, each suite for FOR
# It replays the known cases, and makes random inputs of SEED, or new ones. With TELL=yes what random inputs find is told, and is no failure.
FOR  ?= 1m
SEED ?=
TELL ?=
differential: build
	TELL=$(TELL) hack/differential.sh $(FOR) $(SEED)

## nightly: run every step of CI, those that rotate and older versions included
# It takes hours.
nightly:
	.ci/run --nightly

## lint: run golangci-lint, actionlint and the prose linter
lint: prose
	go tool -modfile=tools/go.mod golangci-lint run ./...
	go tool -modfile=tools/go.mod actionlint

## cross: build the program for every supported platform
cross:
	for os in linux darwin windows; do for arch in amd64 arm64; do echo $$os/$$arch; GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 go build -o /dev/null ./cmd/conformance || exit 1; done; done

## release: make the archives of a release and their checksums in DIST
DIST ?= dist
release:
	hack/release.sh $(DIST)

## clean: remove what builds and runs have written
clean:
	rm -rf bin conformance-report $(DIST) $(SITE)

## help: list the targets
help:
	@awk -F ': ' '/^## / { printf "%-18s %s\n", substr($$1, 4), substr($$0, length($$1) + 3) }' Makefile
