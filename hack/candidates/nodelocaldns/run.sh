#!/usr/bin/env bash
# Judges NodeLocal DNSCache 1.26.7 before the CoreDNS of the lab. Further arguments go to `conformance run`. Needs setpriv (util-linux).
#
# NODELOCALDNS_HOME is a folder with the program node-cache, as the Makefile of kubernetes/dns builds it.
set -euo pipefail
home=$(realpath -m "${NODELOCALDNS_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/nodelocaldns-1.26.7}")
cd "$(dirname "$0")/../../.."
if ! [ -x "$home/node-cache" ]; then
  echo "nodelocaldns: there is no $home/node-cache: build cmd/node-cache of kubernetes/dns 1.26.7 and put it there" >&2
  exit 64
fi
make -s build
bin/conformance lab build
kubernetes=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/kubernetes/v1.37.1/linux-$(go env GOARCH)
mkdir -p "$home/bin" conformance-report
ln -sf "$kubernetes/coredns" "$home/coredns"
for program in "$kubernetes"/*; do
  [ "${program##*/}" = coredns ] || ln -sf "$program" "$home/bin/"
done
ln -sf "$PWD/hack/candidates/nodelocaldns/dns.sh" "$home/bin/coredns"
programs=conformance-report/nodelocaldns-programs # the report repeats the command: a path that tells nothing of this machine
ln -sfn "$home/bin" "$programs"
export NODELOCALDNS_HOME=$home
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  exec bin/conformance certify --out "$BUNDLE" --tier lab --implementation hack/candidates/nodelocaldns/implementation.yaml --kubernetes-bin-dir "$programs" "$@"
fi
exec bin/conformance run --tier lab --suite proxy --focus 'proxy-dns*' --kubernetes-bin-dir "$programs" --report-dir "${REPORT_DIR:-conformance-report}/nodelocaldns" "$@"
