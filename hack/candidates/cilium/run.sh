#!/usr/bin/env bash
# Judges Cilium as the service proxy of the lab, with its eBPF on the nodes. Runs as root, one run at a time. Needs clang and llc of LLVM 19
# (Debian: clang-19, llvm-19), kubectl, iproute2 and a cgroup v2.
#
#   run.sh [snat|dsr|hybrid|maglev|beside-kube-proxy] [ARGUMENTS of `conformance run`]
#
# CILIUM_VERSION is v1.20.2, or another one that the module proxy serves: v1.19.6.
# snat is the default: replies of other nodes come back by the node that was asked. With dsr they go straight to the client, with hybrid those of TCP do. maglev
# chooses backends by a hash that every node has, instead of at random. beside-kube-proxy is Cilium that does not replace kube-proxy: it serves cluster IPs for
# pods, and kube-proxy all else.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=${CILIUM_VERSION:-v1.20.2}
mode=snat
case ${1-} in
snat | dsr | hybrid | maglev | beside-kube-proxy)
  mode=$1
  shift
  ;;
esac
home=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/cilium-$version

if [ "$(id -u)" != 0 ]; then
  echo "cilium: eBPF programs are loaded by root only: run this as root" >&2
  exit 64
fi
for program in clang llc kubectl ip tc findmnt flock; do
  if ! PATH=/usr/lib/llvm-19/bin:$PATH command -v $program >/dev/null; then
    echo "cilium: there is no program $program: install clang-19, llvm-19, kubernetes-client, iproute2 and util-linux" >&2
    exit 64
  fi
done
unified=$(findmnt -n -o TARGET -t cgroup2 | head -1)
if [ -z "$unified" ]; then
  echo "cilium: no cgroup v2 is mounted, where Cilium hangs its load balancing of sockets" >&2
  exit 64
fi

# The agent is built without BGP: one module that this needs is not served by the module proxy.
mkdir -p "$home"
exec 9>"$home/lock"
if ! flock -n 9; then
  echo "cilium: another run is under way: $home/lock" >&2
  exit 64
fi
if ! [ -x "$home/cilium-agent" ]; then
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

# All processes of the run are in one cgroup: on it hang the programs that translate when a socket connects, and by it what a killed run left is found.
cgroup=$unified/conformance-cilium
state=/run/conformance-cilium
before=$unified$(sed -n 's/^0:://p' /proc/self/cgroup)
clean() {
  echo $$ >"$before/cgroup.procs"
  if [ -d "$cgroup" ]; then
    echo 1 >"$cgroup/cgroup.kill"
    for _ in {1..100}; do
      find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null # those of nodes are within
      [ -d "$cgroup" ] || break
      sleep 0.1
    done
  fi
  findmnt -n -r -o TARGET | { grep "^$state/" || true; } | xargs -r umount -l
  rm -rf "$state"
  rmdir --ignore-fail-on-non-empty /run/cilium 2>/dev/null || true
}
clean
trap clean EXIT
mkdir "$cgroup" "$state"
echo $$ >"$cgroup/cgroup.procs"

export CILIUM_MODE=$mode CILIUM_HOME=$home CILIUM_CGROUP=$cgroup CILIUM_STATE=$state PATH=$PWD/hack/candidates/cilium:$PATH
ready='exec 3<>/dev/tcp/127.0.0.1/10256; printf "GET /healthz HTTP/1.0\r\n\r\n" >&3; grep -q "^HTTP/1.. 200" <&3'
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  judge=(certify --out "$BUNDLE")
else
  judge=(run --report-dir "${REPORT_DIR:-conformance-report}/cilium-$mode")
fi
claims=conformance-report/cilium-$version.yaml
mkdir -p conformance-report
implementation=implementation.yaml
if [ "$mode" = beside-kube-proxy ]; then
  implementation=beside-kube-proxy.yaml
  # Both are to be ready: health of the agent is at a port of its own.
  ready="$ready && exec 3<>/dev/tcp/127.0.0.1/9879; printf \"GET /healthz HTTP/1.0\\r\\nbrief: true\\r\\n\\r\\n\" >&3; grep -q \"^HTTP/1.. 200\" <&3"
  CILIUM_KUBE_PROXY=$(bin/conformance lab build | sed -n 's/^Kubernetes .*: //p')/kube-proxy
  export CILIUM_KUBE_PROXY
fi
sed "s/v1\.20\.2/$version/" "hack/candidates/cilium/$implementation" >"$claims"
bin/conformance "${judge[@]}" --tier lab --implementation "$claims" \
  --node-setup "node.sh setup {kubeconfig} {node}" --proxy-command "node.sh start {kubeconfig} {node}" \
  --node-teardown "node.sh remove {kubeconfig} {node}" \
  --pod-setup "node.sh plug {kubeconfig} {node} {pod-interface}" --pod-teardown "node.sh unplug {kubeconfig} {node} {pod-interface}" \
  --pod-interface-prefix lxc --proxy-ready "bash -c '$ready'" "$@" 9>&-
