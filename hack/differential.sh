#!/usr/bin/env bash
# Compares the reference with real components: the cases of fixtures/differential, then random requests, then random Pods, then random names, then random traffic in each mode of kube-proxy.
#   hack/differential.sh FOR [SEED]   each for so long, such as 1m; without a seed the inputs are new ones
set -euo pipefail
cd "$(dirname "$0")/.."
lasts=${1:?usage: hack/differential.sh FOR [SEED]}
seed=${2:+--seed $2}
name=differential-$$
kubeconfig=$(mktemp -u)
trap 'bin/conformance lab down --name "$name" >/dev/null || true; rm -f "$kubeconfig"' EXIT
bin/conformance lab up --name "$name" --nodes 0 --service-cidr 10.96.0.0/24,fd00:10:96::/112 --kubeconfig "$kubeconfig"
bin/conformance differential replay --kubeconfig "$kubeconfig"
bin/conformance lab down --name "$name"
# shellcheck disable=SC2086 # a flag and its value
bin/conformance differential api --for "$lasts" $seed
# shellcheck disable=SC2086
bin/conformance differential endpoints --for "$lasts" $seed
# shellcheck disable=SC2086
bin/conformance differential dns --for "$lasts" $seed
for mode in iptables nftables; do
  # shellcheck disable=SC2086
  bin/conformance differential traffic --for "$lasts" --proxy-mode "$mode" $seed
done
