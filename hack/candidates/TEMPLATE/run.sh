#!/usr/bin/env bash
# Judges my-proxy as the service proxy of the lab. Arguments go to `conformance run`; hack/publish.sh has it certify.
set -euo pipefail
folder=$(basename "$(dirname "$(readlink -f "$0")")")
cd "$(dirname "$0")/../../.."

# 1. Build your program here, of a version that is pinned, or find it. It runs in the network namespace of each node of the lab.
if ! command -v my-proxy >/dev/null; then
  echo "$folder: there is no program my-proxy: say here where it comes from" >&2
  exit 64
fi
make -s build

# 2. Say how it starts, and what succeeds once it serves. {kubeconfig}, {node}, {pod-cidr} and {cgroup} are filled in.
if [ -n "${BUNDLE-}" ]; then
  judge=(certify --out "$BUNDLE")
else
  judge=(run --report-dir "${REPORT_DIR:-conformance-report}/$folder")
fi
exec bin/conformance "${judge[@]}" --tier lab --implementation "hack/candidates/$folder/implementation.yaml" \
  --proxy-command 'my-proxy {kubeconfig}' --proxy-ready 'true' "$@"
