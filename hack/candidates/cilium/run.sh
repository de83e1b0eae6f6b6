#!/usr/bin/env bash
# Judges Cilium as the service proxy of the lab, with its eBPF on the nodes. Runs as root. Needs clang and llc of LLVM 19 (Debian: clang-19, llvm-19), kubectl,
# iproute2 and a cgroup v2. Arguments go to `conformance run`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=v1.20.2
home=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/cilium-$version

if [ "$(id -u)" != 0 ]; then
  echo "cilium: eBPF programs are loaded by root only: run this as root" >&2
  exit 64
fi
for program in clang-19 llc-19 kubectl ip tc; do
  if ! PATH=$PATH:/usr/lib/llvm-19/bin command -v $program >/dev/null; then
    echo "cilium: there is no program $program: install clang-19, llvm-19, kubernetes-client and iproute2" >&2
    exit 64
  fi
done

# The agent is built without BGP: one module that this needs is not served by the module proxy.
if ! [ -x "$home/cilium-agent" ]; then
  mkdir -p "$home"
  source=$(go mod download -json "github.com/cilium/cilium@$version" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
  rm -rf "$home/src"
  cp -r "$source" "$home/src"
  chmod -R u+w "$home/src"
  rm -r "$home/src/pkg/bgp"
  mkdir "$home/src/pkg/bgp"
  cp hack/candidates/cilium/bgp.go.txt "$home/src/pkg/bgp/cell.go"
  (
    cd "$home/src"
    sed -i '/osrg\/gobgp/d' go.mod
    GOFLAGS=-mod=mod CGO_ENABLED=0 nice go build -ldflags "-s -w -X github.com/cilium/cilium/pkg/version.ciliumVersion=${version#v}" -o ../cilium-agent ./daemon
  )
fi
make -s build
go build -o "$home/register" ./hack/candidates/cilium/register

# The programs that translate addresses when a socket connects hang on a cgroup: everything of the run is in one of its own.
unified=$(findmnt -n -o TARGET -t cgroup2 | head -1)
cgroup=$unified/conformance-cilium-$$
before=$unified$(sed -n 's/^0:://p' /proc/self/cgroup)
mkdir "$cgroup"
echo $$ >"$cgroup/cgroup.procs"
trap 'echo $$ >"$before/cgroup.procs"; rmdir "$cgroup"' EXIT

node="CILIUM_HOME=$home CILIUM_CGROUP=$cgroup $PWD/hack/candidates/cilium/node.sh"
ready='exec 3<>/dev/tcp/127.0.0.1/10256; printf "GET /healthz HTTP/1.0\r\n\r\n" >&3; grep -q "^HTTP/1.. 200" <&3'
bin/conformance run --tier lab --suite proxy --report-dir "${REPORT_DIR:-conformance-report}/cilium" \
  --implementation hack/candidates/cilium/implementation.yaml \
  --node-setup "env $node setup {kubeconfig} {node}" --proxy-command "env $node start {kubeconfig} {node}" \
  --node-teardown "env $node remove {kubeconfig} {node}" \
  --pod-setup "env $node plug {kubeconfig} {node} {pod-interface}" --pod-teardown "env $node unplug {kubeconfig} {node} {pod-interface}" --proxy-ready "bash -c '$ready'" "$@"
