#!/usr/bin/env bash
# Installs a network and a proxy in a kind cluster without any (fixtures/kind/nothing-installed.yaml): kind-setup.sh CLUSTER. These are kind's own network and kube-proxy,
# which the image of the nodes has. Put your own there, such as by `kubectl apply` or helm; $KUBECONFIG names the kubeconfig.
#
#   conformance run --tier kind --kind-cluster fixtures/kind/nothing-installed.yaml --kind-setup 'hack/candidates/TEMPLATE/kind-setup.sh {name}'
set -euo pipefail
node=$1-control-plane
on() { docker exec -i "$node" "$@"; }
kubectl() { on kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }

pods=$(on sed -n 's/^ *podSubnet: *//p' /kind/kubeadm.conf | head -1)
on cat /kind/manifests/default-cni.yaml | sed "s#{{ *.PodSubnet *}}#$pods#" | kubectl apply -f - >&2
on kubeadm init phase addon kube-proxy --config /kind/kubeadm.conf >&2
# A container may not set how many connections the kernel tracks.
kubectl -n kube-system get configmap kube-proxy -o yaml | sed 's/^\( *\)maxPerCore: null/\1maxPerCore: 0/' | kubectl replace -f - >&2
kubectl -n kube-system rollout restart daemonset/kube-proxy >&2
