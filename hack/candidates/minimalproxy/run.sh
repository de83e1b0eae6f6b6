#!/usr/bin/env bash
# Judges fixtures/minimalproxy, a proxy that serves IPv4 cluster IPs only, once as if it claimed everything, once by what it claims. Needs nft.
# Arguments go to both runs.
set -euo pipefail
cd "$(dirname "$0")/../../.."
make -s build
CGO_ENABLED=0 go build -o bin/minimalproxy ./fixtures/minimalproxy
export PATH=$PWD/bin:$PATH
claimed=hack/candidates/minimalproxy/implementation.yaml
judge() {
  bin/conformance "$1" --tier lab --proxy-command 'minimalproxy {kubeconfig}' --proxy-ready 'nft list table ip minimalproxy' "${@:2}"
}
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  judge certify --implementation $claimed --out "$BUNDLE" "$@"
  exit
fi
judge run --suite proxy --report-dir "${REPORT_DIR:-conformance-report}/minimalproxy-all" "$@" || [ $? = 1 ]
judge run --report-dir "${REPORT_DIR:-conformance-report}/minimalproxy" --implementation $claimed "$@"
