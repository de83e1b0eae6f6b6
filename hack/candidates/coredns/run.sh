#!/usr/bin/env bash
# Judges CoreDNS of other versions as the DNS of the lab: run.sh VERSION… (such as v1.14.3 v1.15.0). Each is built from its Go module, with the plugins that the lab has.
set -euo pipefail
cd "$(dirname "$0")/../../.."
if [ $# = 0 ]; then
  echo "usage: hack/candidates/coredns/run.sh VERSION…" >&2
  exit 64
fi
make -s build
bin/conformance lab build
kubernetes=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/kubernetes/v1.37.1/linux-$(go env GOARCH)
code=0
for version; do
  home=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/coredns-$version
  if ! [ -x "$home/bin/coredns" ]; then
    mkdir -p "$home/bin" "$home/src"
    cp hack/candidates/coredns/main.go.txt "$home/src/main.go"
    (
      cd "$home/src"
      printf 'module coredns-of-the-lab\n\ngo 1.26.0\n\nrequire github.com/coredns/coredns %s\n' "$version" >go.mod
      GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0 nice go build -trimpath -ldflags '-s -w' -o ../bin/coredns .
    )
  fi
  for program in "$kubernetes"/*; do
    [ "${program##*/}" = coredns ] || ln -sf "$program" "$home/bin/"
  done
  programs=conformance-report/coredns-$version-programs # the report repeats the command: a path that tells nothing of this machine
  mkdir -p conformance-report
  ln -sfn "$home/bin" "$programs"
  if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
    sed "s/v1\.15\.0/$version/" hack/candidates/coredns/implementation.yaml >"conformance-report/coredns-$version.yaml"
    bin/conformance certify --out "$BUNDLE" --tier lab --implementation "conformance-report/coredns-$version.yaml" --kubernetes-bin-dir "$programs" || code=$?
  else
    bin/conformance run --tier lab --suite proxy --focus 'proxy-dns*' --kubernetes-bin-dir "$programs" --report-dir "${REPORT_DIR:-conformance-report}/coredns-$version" || code=$?
  fi
done
exit "$code"
