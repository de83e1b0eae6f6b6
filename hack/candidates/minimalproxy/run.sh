#!/usr/bin/env bash
# Judges fixtures/minimalproxy, a proxy that serves IPv4 cluster IPs only, once as if it claimed everything, once by what it claims. Needs nft.
# Arguments go to both runs.
set -euo pipefail
cd "$(dirname "$0")/../../.."
make -s build
CGO_ENABLED=0 go build -o bin/minimalproxy ./fixtures/minimalproxy
judge() {
  bin/conformance run --tier lab --suite proxy --proxy-command "$PWD/bin/minimalproxy {kubeconfig}" --proxy-ready 'nft list table ip minimalproxy' "$@"
}
judge --report-dir "${REPORT_DIR:-conformance-report}/minimalproxy-all" "$@" || [ $? = 1 ]
judge --report-dir "${REPORT_DIR:-conformance-report}/minimalproxy" --implementation hack/candidates/minimalproxy/implementation.yaml "$@"
