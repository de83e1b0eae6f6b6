#!/usr/bin/env bash
# Judges kube-proxy with the feature gate AllowServiceExternalIPs off, by what it claims then: implementation.yaml. Arguments go to `conformance run`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
make -s build
programs=$(bin/conformance lab build | sed -n 's/^Kubernetes .*: //p')
ready='exec 3<>/dev/tcp/127.0.0.1/10256; printf "GET /healthz HTTP/1.0\r\n\r\n" >&3; grep -q "^HTTP/1.. 200" <&3'
exec bin/conformance run --tier lab --suite proxy --report-dir "${REPORT_DIR:-conformance-report}/without-external-ips" \
  --implementation hack/candidates/without-external-ips/implementation.yaml \
  --proxy-command "$programs/kube-proxy --feature-gates=AllowServiceExternalIPs=false --kubeconfig={kubeconfig} --hostname-override={node} --proxy-mode=iptables \
    --cluster-cidr={pod-cidr} --detect-local-mode=ClusterCIDR --conntrack-max-per-core=0 --conntrack-min=0 --iptables-min-sync-period=500ms --v=2" \
  --proxy-ready "bash -c '$ready'" "$@"
