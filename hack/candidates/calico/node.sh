#!/usr/bin/env bash
# What run.sh has the lab do on each node.
#
#   node.sh setup|start|remove KUBECONFIG NODE [CGROUP]
#   node.sh plug INTERFACE NAMESPACE POD
#
# The BPF file system of an agent and the folders that it expects are those of its node. It sees them in a mount namespace of its own.
set -euo pipefail
action=$1
case $action in
plug) # as Calico's CNI plugin names the node's end of the cable to a pod
  name=cali$(printf '%s.%s' "$3" "$4" | sha1sum | cut -c1-11)
  exec ip link set dev "$2" name "$name"
  ;;
esac
kubeconfig=$2 node=$3
state=$CALICO_STATE/$node
case $action in
setup)
  mkdir -p "$state/bpf" "$state/run" "$state/lib"
  mount -t bpf bpf "$state/bpf"
  objects=$state/objects.yaml
  cat >"$objects" <<EOF
apiVersion: crd.projectcalico.org/v1
kind: ClusterInformation
metadata: {name: default}
spec: {datastoreReady: true, clusterGUID: "0123456789abcdef0123456789abcdef", clusterType: k8s}
---
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: default-ipv4}
spec: {cidr: 10.244.0.0/16, blockSize: 24, ipipMode: Never, vxlanMode: Never, natOutgoing: false, nodeSelector: all()}
---
apiVersion: crd.projectcalico.org/v1
kind: IPPool
metadata: {name: default-ipv6}
spec: {cidr: "fd00:10:244::/48", blockSize: 122, ipipMode: Never, vxlanMode: Never, natOutgoing: false, nodeSelector: all()}
EOF
  export KUBECONFIG=$kubeconfig
  said=
  for _ in {1..20}; do # nodes start at a time, and a definition is served a moment after it came
    if said=$(kubectl apply --server-side --force-conflicts -f "$CALICO_HOME/crd" 2>&1) && said=$(kubectl apply --server-side --force-conflicts -f "$objects" 2>&1); then
      said=
      break
    fi
    sleep 0.5
  done
  if [ -n "$said" ]; then
    echo "$said" >&2
    exit 1
  fi
  # What the start of Calico's node image writes: the addresses by which nodes send to each other.
  own4=$(ip -4 -o addr show dev eth0 scope global | awk 'NR==1{print $4}') own6=$(ip -6 -o addr show dev eth0 scope global | awk 'NR==1{print $4}')
  kubectl annotate --overwrite node "$node" "projectcalico.org/IPv4Address=$own4" "projectcalico.org/IPv6Address=$own6" >/dev/null
  ;;
remove)
  umount -l "$state/bpf"
  rm -rf "$state"
  ;;
start)
  if [ -z "${CALICO_MOUNTS:-}" ]; then
    CALICO_MOUNTS=private exec unshare -m --propagation private "$0" "$@"
  fi
  mkdir -p /usr/lib/calico/bpf /run/calico /var/lib/calico
  mount --bind "$CALICO_HOME/bpf" /usr/lib/calico/bpf
  mount --bind "$state/run" /run/calico
  mount --bind "$state/lib" /var/lib/calico
  mount --bind "$state/bpf" /sys/fs/bpf
  mkdir -p /run/calico/cgroup
  mount --bind "$4" /run/calico/cgroup
  export KUBECONFIG=$kubeconfig CALICO_CGROUP_PATH=/run/calico/cgroup DATASTORE_TYPE=kubernetes NODENAME=$node
  export FELIX_DATASTORETYPE=kubernetes FELIX_FELIXHOSTNAME=$node FELIX_BPFENABLED=true FELIX_BPFDATAIFACEPATTERN='^eth0$' FELIX_BPFKUBEPROXYIPTABLESCLEANUPENABLED=false
  export FELIX_IPV6SUPPORT=true FELIX_ROUTESOURCE=WorkloadIPs FELIX_DEFAULTENDPOINTTOHOSTACTION=ACCEPT
  export FELIX_USAGEREPORTINGENABLED=false FELIX_REPORTINGINTERVALSECS=0 FELIX_LOGSEVERITYSCREEN="${CALICO_LOG:-Warning}" FELIX_LOGFILEPATH=none FELIX_LOGSEVERITYFILE=none FELIX_LOGSEVERITYSYS=none
  export FELIX_HEALTHENABLED=true FELIX_IPTABLESBACKEND=NFT
  # Nodes of the lab share a machine, and tables of the default sizes are walked through again and again.
  export FELIX_BPFMAPSIZECONNTRACK=32768 FELIX_BPFMAPSIZENATBACKEND=32768 FELIX_BPFMAPSIZENATFRONTEND=32768 FELIX_BPFMAPSIZENATAFFINITY=32768 FELIX_BPFMAPSIZEROUTE=16384
  export FELIX_BPFMAPSIZEIPSETS=16384 FELIX_BPFMAPSIZECONNTRACKCLEANUPQUEUE=16384
  # The client outside of the lab has a node as its gateway, which forwards replies to it. By default the node would give them to the peer of the interface that the
  # request came by, as if that were one of a pod. They would be lost (felix/bpf-gpl/fib_co_re.h 33-55).
  export FELIX_BPFREDIRECTTOPEER=Disabled
  while :; do # it ends with 129 where its configuration has changed, and its image starts it again
    code=0
    "$CALICO_HOME/calico-felix" || code=$?
    [ "$code" = 129 ] || exit "$code"
  done
  ;;
esac
