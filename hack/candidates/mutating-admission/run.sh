#!/usr/bin/env bash
# Judges kube-apiserver with a MutatingAdmissionPolicy that adds a label and an annotation to every Service. It is read from a folder when the server
# starts, which v1.37 does by default (feature gate ManifestBasedAdmissionControlConfig). Arguments go to `conformance run`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
make -s build
config=$(mktemp)
trap 'rm -f "$config"' EXIT
cat > "$config" <<EOF
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: MutatingAdmissionPolicyConfiguration
    staticManifestsDir: $PWD/hack/candidates/mutating-admission/policies
EOF
bin/conformance run --tier lab --report-dir "${REPORT_DIR:-conformance-report}/mutating-admission" \
  "--kube-apiserver-flag=--admission-control-config-file=$config" "$@"
