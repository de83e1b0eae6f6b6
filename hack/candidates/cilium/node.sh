#!/usr/bin/env bash
# What run.sh has the lab do on each node.
#
#   node.sh setup|start|remove KUBECONFIG NODE
#   node.sh plug|unplug KUBECONFIG NODE INTERFACE
#
# The folders of an agent (/run/cilium, /var/lib/cilium, the BPF file system) are those of its node. The agent sees them in a mount namespace of its own.
set -euo pipefail
action=$1 kubeconfig=$2 node=$3
state=$CILIUM_STATE/$node
case $action in
setup)
  mkdir -p "$state"/{bpf,run,lib}
  cp -r "$CILIUM_HOME/src/bpf" "$state/lib/bpf"
  mount -t bpf bpf "$state/bpf"
  crds=$CILIUM_HOME/src/pkg/k8s/apis/cilium.io/client/crds
  if ! said=$(kubectl --kubeconfig "$kubeconfig" apply --server-side -f "$crds/v2" -f "$crds/v2alpha1" 2>&1); then
    echo "$said" >&2
    exit 1
  fi
  ;;
plug) exec "$CILIUM_HOME/register" add "$state/run/cilium.sock" "$4" ;;
unplug) exec "$CILIUM_HOME/register" remove "$state/run/cilium.sock" "$4" ;;
remove)
  umount -l "$state/bpf"
  rm -rf "$state"
  ;;
start)
  if [ -z "${CILIUM_MOUNTS:-}" ]; then
    CILIUM_MOUNTS=private exec unshare -m --propagation private "$0" "$@"
  fi
  export PATH=/usr/lib/llvm-19/bin:$PATH
  mkdir -p /run/cilium
  mount --bind "$state/run" /run/cilium
  mount --bind "$state/bpf" /sys/fs/bpf
  mkdir -p /run/cilium/cgroup
  mount --bind "$CILIUM_CGROUP" /run/cilium/cgroup
  export K8S_NODE_NAME=$node
  case $CILIUM_MODE in
  dsr | hybrid)
    forwarding=(--bpf-lb-mode="$CILIUM_MODE")
    # In the lab the way to a client outside is by its gateway. A reply from an address of the gateway, which another node sends, is not to be dropped there.
    for interface in all eth0; do echo 1 >"/proc/sys/net/ipv4/conf/$interface/accept_local"; done
    ;;
  maglev) forwarding=(--bpf-lb-algorithm=maglev --bpf-lb-maglev-table-size=251) ;;
  *) forwarding=(--bpf-lb-mode=snat) ;;
  esac
  if [ "$CILIUM_MODE" = beside-kube-proxy ]; then # cluster IPs for pods are served by the agent, all else by kube-proxy
    while :; do # it ends where its Node changes, and the kubelet would start it again
      "$CILIUM_KUBE_PROXY" --kubeconfig="$kubeconfig" --hostname-override="$node" --proxy-mode=iptables --cluster-cidr=10.244.0.0/16,fd00:10:244::/48 \
        --detect-local-mode=ClusterCIDR --conntrack-max-per-core=0 --conntrack-min=0 --iptables-min-sync-period=500ms --v=2 || true
      sleep 1
    done &
    serving=(--kube-proxy-replacement=false)
  else
    serving=(--kube-proxy-replacement=true --kube-proxy-replacement-healthz-bind-address=0.0.0.0:10256 --bpf-lb-sock=true --bpf-lb-sock-hostns-only=true
      --bpf-lb-external-clusterip=true --enable-health-check-nodeport=true)
  fi
  exec "$CILIUM_HOME/cilium-agent" --k8s-kubeconfig-path="$kubeconfig" "${forwarding[@]}" "${serving[@]}" --enable-service-topology=true \
    --devices=eth0 --direct-routing-device=eth0 --enable-host-legacy-routing=true \
    --routing-mode=native --ipv4-native-routing-cidr=10.244.0.0/16 --ipv6-native-routing-cidr=fd00:10:244::/48 \
    --enable-ipv4=true --enable-ipv6=true --enable-ipv4-masquerade=false --enable-ipv6-masquerade=false \
    --ipam=delegated-plugin --local-router-ipv4=169.254.23.1 --local-router-ipv6=fe80::cafe \
    --enable-endpoint-routes=true --cni-external-routing=true --enable-local-node-route=false --disable-endpoint-crd=true \
    --enable-envoy-config=false --enable-l7-proxy=false --enable-policy=never --enable-hubble=false \
    --api-rate-limit=endpoint-create=auto-adjust:false,rate-limit:100/s,rate-burst:100,parallel-requests:4,max-wait-duration:5m \
    --enable-health-checking=false --enable-endpoint-health-checking=false \
    --cgroup-root=/run/cilium/cgroup --state-dir=/run/cilium --lib-dir="$state/lib" --bpf-root=/sys/fs/bpf
  ;;
esac
