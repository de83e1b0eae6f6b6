#!/usr/bin/env bash
# Installs MetalLB in a kind cluster: setup.sh CLUSTER. run.sh has built its programs.
#
# Its manifest is that of the release, with images that are made here. The addresses are the last ones of the Docker network "kind", on whose link the nodes and the
# client outside of the cluster are: layer 2.
set -euo pipefail
cluster=$1
version=v0.16.2
home=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/metallb-$version
kubectl() { docker exec -i "$cluster-control-plane" kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }

for program in controller speaker; do
  image=metallb.local/$program:$version
  tar -C "$home" -c "$program" | docker import -c "ENTRYPOINT [\"/$program\"]" - "$image" >/dev/null
  for node in $(docker ps -q --filter "label=io.x-k8s.kind.cluster=$cluster" --filter label=io.x-k8s.kind.role); do
    docker save "$image" | docker exec -i "$node" ctr --namespace=k8s.io images import --all-platforms --digests --snapshotter=overlayfs - >/dev/null
  done
done
sed "s#image: quay.io/metallb/#image: metallb.local/#" "$home/src/config/manifests/metallb-native.yaml" | kubectl apply -f - >/dev/null
kubectl -n metallb-system rollout status deployment/controller daemonset/speaker --timeout=180s

pool() { # the last addresses of each subnet
  docker network inspect kind -f '{{range .IPAM.Config}}{{.Subnet}} {{end}}' | python3 -c '
import ipaddress, sys
for subnet in sys.stdin.read().split():
    last = ipaddress.ip_network(subnet)[-2]
    print("  - %s-%s" % (last - 250, last))'
}
cat >"$home/pool.yaml" <<EOF
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: link, namespace: metallb-system}
spec:
  addresses:
$(pool)
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: link, namespace: metallb-system}
EOF
for try in {1..60}; do # its webhook answers a little later
  said=$(kubectl apply -f - <"$home/pool.yaml" 2>&1) && exit
  sleep 1
done
echo "$said" >&2
exit 1
