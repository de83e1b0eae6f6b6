#!/usr/bin/env bash
# Judges kube-apiserver of other versions, one after the other: run.sh VERSION… builds each from its Go modules first, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/../../.."
make -s build
for version in "${@:-v1.35.4}"; do
  nice bin/conformance run --tier lab --suite allocation,apischema --kubernetes-version "$version" --report-dir "${REPORT_DIR:-conformance-report}/kubernetes-$version"
done
