# Everything here needs Go 1.26 and make; nothing is downloaded but Go modules. lab-proxy needs iptables and nftables on the machine.
BIN        := bin/conformance
REPORT_DIR ?= conformance-report
VERSIONS   ?= v1.37.1
FUZZ_TIME  ?= 60s

.PHONY: conformance build test lab lab-proxy lab-stays lab-surroundings page candidates-kine kind lab-repeat selftest reports site readers verify generate fuzz bench lint cross release clean

## conformance: build, run everything on the reference, print the verdict and where the reports are
conformance: build
	$(BIN) run --report-dir $(REPORT_DIR)

# Without cgo the program is static, as pods need it. It carries the agent alone for this machine's processors.
build:
	CGO_ENABLED=0 hack/agent.sh $$(go env GOARCH) -- go build -o $(BIN) ./cmd/conformance

## test: unit tests, and all suites on the reference; no root, no network beyond Go modules
test: build
	go test -timeout 30m ./... # the limit is for tests that hang: a busy machine takes long
	cd docs/examples/allocator && go test ./...
	cd docs/examples/e2e-framework && go test ./...
	$(BIN) run --report-dir $(REPORT_DIR)/reference

## lab: allocation and apischema on the real API server, for each of VERSIONS (built from Go modules the first time)
lab: build
	for v in $(VERSIONS); do $(BIN) run --tier lab --suite allocation --suite apischema --kubernetes-version $$v --report-dir $(REPORT_DIR)/lab-$$v || exit $$?; done

## lab-proxy: the proxy suite on a real kube-proxy, in each of PROXY_MODES (needs iptables and nftables)
PROXY_MODES ?= iptables nftables
lab-proxy: build
	for m in $(PROXY_MODES); do $(BIN) run --tier lab --suite proxy --proxy-mode $$m --report-dir $(REPORT_DIR)/lab-$$m || exit $$?; done

## lab-stays: tests of a lab that stays up, on the real components: judged again and again, killed runs, proxies that end (needs iptables)
lab-stays: build
	go test -count=1 -tags lab ./framework/lab ./cmd/conformance -run 'Real|Stay|ServerRefuses'

## lab-surroundings: the proxy suite in PROXY_MODE, where the network around the lab does different things with addresses that nobody has; fails if a verdict differs
SURROUNDINGS ?= silent,resetting,accepting
lab-surroundings: build
	go run ./hack/labrepeat -each surroundings=$(SURROUNDINGS) $(BIN) run --tier lab --suite proxy --proxy-mode $(PROXY_MODE)

## reports: verify the bundles in reports/, and write their index
reports: build
	$(BIN) report index reports

## site: the website of reports/, in SITE
SITE ?= site
site: build
	$(BIN) report site reports --out $(SITE)

## page: the HTML page of a report and the website in a real browser (needs Chromium and npm)
page: build
	hack/page.sh $(REPORT_DIR)/pages

## readers: reports read by other programs: JUnit by two readers, metrics by Prometheus' parser (needs Python's junitparser)
readers: build
	hack/readers.sh $(REPORT_DIR)/readers

## candidates-kine: allocation and apischema on the real API server with kine and SQLite for etcd; fails on any other deviation than on etcd (needs a C compiler)
candidates-kine:
	REPORT_DIR=$(REPORT_DIR)/candidates hack/candidates/kine-sqlite/run.sh

## kind: all suites on a kind cluster for each of SERVICE_CIDRS, of NODE_IMAGE or kind's own (needs a Docker engine)
SERVICE_CIDRS ?= 10.96.0.0/24
NODE_IMAGE    ?=
kind: build
	$(BIN) run --tier kind $(addprefix --service-cidr=,$(SERVICE_CIDRS)) --node-image=$(NODE_IMAGE) --report-dir $(REPORT_DIR)/kind

## lab-repeat: RUNS lab runs in a row of SUITES in PROXY_MODE; fails if a verdict differs from run to run
RUNS       ?= 50
SUITES     ?= allocation,apischema
PROXY_MODE ?= iptables
lab-repeat: build
	go run ./hack/labrepeat -n $(RUNS) $(BIN) run --tier lab --suite $(SUITES) --proxy-mode $(PROXY_MODE)

## selftest: the checks against every fault
selftest: build
	$(BIN) selftest --report-dir $(REPORT_DIR)/selftest

## verify: catalogue, checks, faults, expectations and generated files agree
verify: build
	go vet ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go test ./framework/spec
	$(BIN) verify docs/specification.md

## generate: ID constants and docs/specification.md from the catalogue
generate:
	go generate ./framework/spec
	$(MAKE) build
	$(BIN) verify --write docs/specification.md

## fuzz: every fuzz target for FUZZ_TIME
fuzz:
	./hack/fuzz.sh $(FUZZ_TIME)

## bench: the reference allocator beside Kubernetes' own, and the suites as a whole
bench: build
	cd bench && go run . -count 5

## lint: golangci-lint and actionlint from the tools module
lint:
	go tool -modfile=tools/go.mod golangci-lint run ./...
	go tool -modfile=tools/go.mod actionlint

## cross: the program builds for every supported platform
cross:
	for os in linux darwin windows; do for arch in amd64 arm64; do echo $$os/$$arch; GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 go build -o /dev/null ./cmd/conformance || exit 1; done; done

## release: archives of the program for every platform, and their checksums, in DIST
DIST ?= dist
release:
	hack/release.sh $(DIST)

clean:
	rm -rf bin conformance-report $(DIST) $(SITE)
