#!/usr/bin/env bash
# Judges an implementation by what it claims and publishes the bundle in reports/: publish.sh IMPLEMENTATION/VERSION/MODE [ARGUMENTS of certify]. `make reports` then
# renews the index.
#   kube-proxy/VERSION/MODE, kube-proxy/VERSION/MODE-CONFIGURATION (hack/candidates/kube-proxy), kube-apiserver/VERSION/etcd, kube-apiserver/VERSION/kine-BACKEND, kind/VERSION/MODE, cilium/VERSION/ebpf, cilium/VERSION/ebpf-FORWARDING, calico/VERSION/ebpf, coredns/VERSION/kubernetes, and any FOLDER of hack/candidates whose run.sh
#   certifies into $BUNDLE (TEMPLATE)
set -euo pipefail
cd "$(dirname "$0")/.."
entry=${1:?name IMPLEMENTATION/VERSION/MODE}
shift
IFS=/ read -r implementation version mode <<<"$entry"
make -s build
work=conformance-report/publish/$entry # a path that tells nothing of this machine: the bundle repeats the command
rm -rf "$work"
mkdir -p "$work"
export BUNDLE=$work/bundle
# claim writes the implementation file of a component of Kubernetes: its project, version and suites. claimed are profiles, all if empty.
claimed=
claim() {
  printf 'organization: conformance project (not its vendor)\nproject: %s\nversion: %s\nurl: https://kubernetes.io\ncontact: [https://github.com/service-conformance/conformance/issues]\n' \
    "$implementation" "$version" >"$work/implementation.yaml"
  if [ $# -gt 0 ]; then
    printf 'suites: [%s]\n' "$1" >>"$work/implementation.yaml"
  fi
  if [ -n "$claimed" ]; then
    printf 'profiles: [%s]\n' "$claimed" >>"$work/implementation.yaml"
  fi
}
certify() {
  bin/conformance certify --implementation "$work/implementation.yaml" --out "$BUNDLE" "$@"
}
code=0
case $entry in
kube-proxy/*/*)
  # Without what the lab cannot judge: ServiceEnvironment, which needs a kubelet, and SCTP, which not every kernel has.
  claimed="core, kube-proxy, kube-proxy-${mode%%-*}, DualStack, EndpointControllers, ExternalIPs, ExternalName, HeadlessService, HealthCheckNodePort, LoadBalancer,
    LoadBalancerSourceRanges, NodePort, ServiceDNS, SessionAffinity, TrafficDistribution, UDP"
  claim proxy
  case $mode in *-*) set -- --proxy-configuration "hack/candidates/kube-proxy/${mode#*-}.yaml" "$@" ;; esac
  certify --tier lab --kubernetes-version "$version" --proxy-mode "${mode%%-*}" "$@" || code=$?
  ;;
kube-apiserver/*/etcd)
  claim "allocation, apischema"
  certify --tier lab --kubernetes-version "$version" "$@" || code=$?
  ;;
kind/*/*)
  # Without those of which tier kind cannot judge every MUST: EndpointControllers, which needs Pods that a test writes, and SCTP, which not every kernel has.
  claimed="core, kubernetes-api, kube-proxy, kube-proxy-$mode, DryRun, DualStack, ExternalIPs, ExternalName, FieldValidation, HeadlessService, HealthCheckNodePort, LoadBalancer, LoadBalancerSourceRanges,
    NodePort, OpenAPI, ServerSideApply, ServiceCIDR, ServiceDNS, ServiceEnvironment, SessionAffinity, TrafficDistribution, UDP, Warnings"
  claim
  certify --tier kind --proxy-mode "$mode" "$@" || code=$?
  ;;
kube-apiserver/*/kine-*)
  claim "allocation, apischema"
  IMPLEMENTATION=$work/implementation.yaml hack/candidates/kine/run.sh "${mode#kine-}" --kubernetes-version "$version" "$@" || code=$?
  ;;
cilium/*/ebpf*)
  forwarding=${mode#ebpf} # empty, or a dash and its name
  CILIUM_VERSION=$version hack/candidates/cilium/run.sh ${forwarding:+"${forwarding#-}"} "$@" || code=$?
  ;;
calico/*/ebpf)
  CALICO_VERSION=$version hack/candidates/calico/run.sh "$@" || code=$?
  ;;
coredns/*/*)
  if [ $# -gt 0 ]; then
    echo "publish: an entry of coredns takes no arguments: each of run.sh is a version" >&2
    exit 64
  fi
  hack/candidates/coredns/run.sh "$version" || code=$?
  ;;
*)
  if ! [ -x "hack/candidates/$implementation/run.sh" ]; then
    echo "publish: there is no $entry: hack/candidates has no $implementation/run.sh" >&2
    exit 64
  fi
  "hack/candidates/$implementation/run.sh" "$@" || code=$?
  ;;
esac
if ! [ -f "$BUNDLE.tar.gz" ]; then
  exit "$code"
fi
bin/conformance report verify "$BUNDLE.tar.gz"
mkdir -p "reports/$entry"
cp "$BUNDLE.tar.gz" "reports/$entry/bundle.tar.gz"
echo "published: reports/$entry (exit code $code)"
