#!/usr/bin/env bash
# Judges Calico's eBPF data plane as the service proxy of the lab. Runs as root, one run at a time. Needs kubectl, iproute2, iptables and a cgroup v2.
#
# Arguments go to `conformance run`. CALICO_HOME is a folder of what Calico's own Makefile builds: calico-felix, bpf/ (felix/bpf-gpl/bin) and crd/ (libcalico-go/config/crd).
# CALICO_VERSION is v3.32.1, or another one.
set -euo pipefail
version=${CALICO_VERSION:-v3.32.1}
home=$(realpath -m "${CALICO_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/calico-$version}")
cd "$(dirname "$0")/../../.."
if [ "$(id -u)" != 0 ]; then
  echo "calico: eBPF programs are loaded by root only: run this as root" >&2
  exit 64
fi
for program in kubectl ip iptables findmnt flock; do
  if ! command -v $program >/dev/null; then
    echo "calico: there is no program $program: install kubernetes-client, iproute2, iptables and util-linux" >&2
    exit 64
  fi
done
for part in calico-felix bpf crd; do
  if ! [ -e "$home/$part" ]; then
    echo "calico: there is no $home/$part: build Calico $version and put calico-felix, felix/bpf-gpl/bin (as bpf) and libcalico-go/config/crd (as crd) there" >&2
    exit 64
  fi
done
if [ -z "$(findmnt -n -o TARGET -t cgroup2)" ]; then
  echo "calico: no cgroup v2 is mounted, where Calico hangs its load balancing of sockets" >&2
  exit 64
fi
exec 9>"$home/lock"
if ! flock -n 9; then
  echo "calico: another run is under way: $home/lock" >&2
  exit 64
fi
make -s build
state=/run/conformance-calico
clean() {
  findmnt -n -r -o TARGET | { grep "^$state/" || true; } | xargs -r umount -l
  rm -rf "$state"
  rmdir --ignore-fail-on-non-empty /usr/lib/calico/bpf /usr/lib/calico /run/calico /var/lib/calico 2>/dev/null || true
}
clean
trap clean EXIT
mkdir "$state"
export CALICO_HOME=$home CALICO_STATE=$state PATH=$PWD/hack/candidates/calico:$PATH
get='exec 3<>/dev/tcp/127.0.0.1/PORT; printf "GET PATH HTTP/1.0\r\nHost: localhost\r\n\r\n" >&3; grep -q "^HTTP/1.. 20[04]" <&3'
one=${get/PORT/9099} two=${get/PORT/10256}
ready="${one/PATH//readiness} && ${two/PATH//healthz}"
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  judge=(certify --out "$BUNDLE")
else
  judge=(run --report-dir "${REPORT_DIR:-conformance-report}/calico")
fi
claims=conformance-report/calico-$version.yaml
mkdir -p conformance-report
sed "s/v3\.32\.1/$version/" hack/candidates/calico/implementation.yaml >"$claims"
bin/conformance "${judge[@]}" --tier lab --implementation "$claims" \
  --node-setup "node.sh setup {kubeconfig} {node}" --proxy-command "node.sh start {kubeconfig} {node} {cgroup}" --node-teardown "node.sh remove {kubeconfig} {node}" \
  --pod-setup "node.sh plug {pod-interface} {pod-namespace} {pod-name}" --proxy-ready "bash -c '$ready'" "$@" 9>&-
