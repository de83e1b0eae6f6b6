#!/usr/bin/env bash
# Judges kube-apiserver with the admission plugin DenyServiceExternalIPs, and kube-proxy beside it. Arguments go to `conformance run`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
make -s build
exec bin/conformance run --tier lab --report-dir "${REPORT_DIR:-conformance-report}/deny-external-ips" \
  --kube-apiserver-flag=--enable-admission-plugins=DenyServiceExternalIPs "$@"
