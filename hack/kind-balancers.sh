#!/usr/bin/env bash
# Stands in for the load balancers of a cloud on a kind cluster, until interrupted: kind-balancers.sh CLUSTER [KUBERNETES-VERSION].
#
# The service controller is that of cloud providers (k8s.io/cloud-provider), which tier lab builds. Its cloud has no machines: it writes which load balancers there
# are and by which nodes they are reached. For each of their addresses, the client outside of the cluster, which the run starts, gets a route by these nodes before
# the controller goes on. That takes root. Judge it meanwhile:
#
#   conformance run --tier kind --reuse CLUSTER --implementation hack/kind-balancers.yaml --focus 'proxy-loadbalancer-c*' --focus proxy-loadbalancer-node-exclusion
set -euo pipefail
apply=0
if [ "${1-}" = apply ]; then
  apply=1
  shift
fi
cluster=${1:?name a kind cluster}
address_of() { docker inspect -f '{{.NetworkSettings.Networks.kind.IPAddress}}' "$1"; }

# As the command of the controller: give the clients routes by what the file says. There is no client before the run has started one.
if [ $apply = 1 ]; then
  outside=$(docker ps -q --filter "name=^$cluster-outside-")
  [ -n "$outside" ] || exit 0
  {
    echo 'echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy' # each connection takes a way of its own
    echo 'ip route show | { grep ^198.51.100. || true; } | while read -r a rest; do ip route delete "$a"; done'
    python3 - "$2" <<'P' | while read -r address nodes; do
import json, sys
for b in json.load(open(sys.argv[1])):
    for a in b["addresses"]:
        if ":" not in a:
            print(a, *b["nodes"])
P
      printf 'ip route replace %s' "$address"
      for node in $nodes; do printf ' nexthop via %s' "$(address_of "$node")"; done
      echo
    done
  } | nsenter -t "$(docker inspect -f '{{.State.Pid}}' "$outside")" -n sh -e
  exit
fi

version=${2:-v1.37.1}
controller=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/kubernetes/$version/linux-$(go env GOARCH)/service-controller
if ! [ -x "$controller" ]; then
  echo "kind-balancers: there is no $controller: conformance lab build --kubernetes-version $version builds it" >&2
  exit 64
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
docker exec "$cluster-control-plane" cat /etc/kubernetes/admin.conf |
  sed "s#server: .*#server: https://$(address_of "$cluster-control-plane"):6443#" >"$work/kubeconfig"
echo "the service controller is at work on $cluster; Ctrl-C ends it"
"$controller" --kubeconfig "$work/kubeconfig" --load-balancers "$work/balancers.json" --first-ipv4 198.51.100.1 --first-ipv6 2001:db8:1b::1 \
  --apply "'$0' apply '$cluster' '$work/balancers.json'"
