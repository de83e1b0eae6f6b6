#!/usr/bin/env bash
# Judges the load balancers that MetalLB makes, in layer 2 mode, on a kind cluster beside kube-proxy. Needs a Docker engine. Arguments go to `conformance run`, such as
# --node-image; hack/publish.sh has it certify.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=v0.16.2
home=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/metallb-$version

# The speaker is built without BGP by FRR-K8s: the version of the module that this needs is not served by the module proxy.
if ! [ -x "$home/speaker" ]; then
  mkdir -p "$home"
  source=$(go mod download -json "go.universe.tf/metallb@$version" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
  rm -rf "$home/src"
  cp -r "$source" "$home/src"
  chmod -R u+w "$home/src"
  rm "$home"/src/internal/bgp/frrk8s/*.go
  cp hack/candidates/metallb/frrk8s.go.txt "$home/src/internal/bgp/frrk8s/frrk8s.go"
  (
    cd "$home/src"
    go mod edit -replace github.com/metallb/frr-k8s=github.com/metallb/frr-k8s@v0.0.21
    GOTOOLCHAIN=local GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0 nice go build -ldflags '-s -w' -o "$home/" ./controller ./speaker
  )
fi
make -s build

if [ -n "${BUNDLE-}" ]; then
  judge=(certify --out "$BUNDLE")
else
  judge=(run --report-dir "${REPORT_DIR:-conformance-report}/metallb")
fi
exec bin/conformance "${judge[@]}" --tier kind --service-cidr 10.96.0.0/16,fd00:10:96::/112 --implementation hack/candidates/metallb/implementation.yaml \
  --kind-setup 'hack/candidates/metallb/setup.sh {name}' "$@"
