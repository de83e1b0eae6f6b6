#!/usr/bin/env bash
# Judges kube-router as the service proxy of the lab. Where the machine's kernel has no IPVS, the lab boots itself in user-mode-linux, and a check takes minutes.
# Arguments go to `conformance run`, such as --focus proxy-udp-forwarded.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=v2.1.0
home=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/kube-router-$version

for program in ip iptables ipset conntrack; do
  if ! command -v $program >/dev/null; then
    echo "kube-router: there is no program $program: install iproute2, iptables, ipset and conntrack" >&2
    exit 64
  fi
done
if ! [ -x "$home/kube-router" ]; then
  source=$(go mod download -json "github.com/cloudnativelabs/kube-router/v2@$version" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
  mkdir -p "$home"
  (cd "$source" && CGO_ENABLED=0 nice go build -o "$home/kube-router" ./cmd/kube-router)
fi
make -s build

ready='exec 3<>/dev/tcp/127.0.0.1/20244; printf "GET /healthz HTTP/1.0\r\n\r\n" >&3; grep -q "^HTTP/1.. 200" <&3'
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  judge=(certify --out "$BUNDLE")
else
  judge=(run --report-dir "${REPORT_DIR:-conformance-report}/kube-router")
fi
export PATH=$home:$PATH
exec bin/conformance "${judge[@]}" --tier lab --suite proxy --implementation hack/candidates/kube-router/implementation.yaml --proxy-ipvs \
  --proxy-command "NODE_NAME={node} kube-router --kubeconfig={kubeconfig} --run-service-proxy=true --run-router=true --run-firewall=false \
    --enable-cni=false --enable-overlay=false --enable-pod-egress=false --enable-ipv4=true --enable-ipv6=true --nodeport-bindon-all-ip=true --hairpin-mode=false" \
  --proxy-ready "bash -c '$ready'" "$@"
