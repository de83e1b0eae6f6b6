#!/usr/bin/env bash
# Compares the reference with real components: the cases of fixtures/differential, then random requests, then random Pods, then random names, then random traffic in each mode of kube-proxy.
#   hack/differential.sh FOR [SEED]   each for so long, such as 1m; without a seed the inputs are new ones
# With TELL=yes a difference that random inputs show is told, and is no failure. One that a known case shows always is.
set -euo pipefail
cd "$(dirname "$0")/.."
lasts=${1:?usage: hack/differential.sh FOR [SEED]}
seed=()
[ -n "${2-}" ] && seed=(--seed "$2")
name=differential-$$
kubeconfig=$(mktemp -u)
trap 'bin/conformance lab down --name "$name" >/dev/null || true; rm -f "$kubeconfig"' EXIT

compare() { # SUITE FLAG...
  local code=0
  bin/conformance differential "$1" --for "$lasts" ${seed[@]+"${seed[@]}"} "${@:2}" || code=$?
  if [ "$code" = 1 ] && [ "${TELL-}" = yes ]; then
    echo "differential: the reference and the real one differ on inputs that no case has: decide the classes above, see docs/differential.md"
  elif [ "$code" != 0 ]; then
    exit "$code"
  fi
}

bin/conformance lab up --name "$name" --nodes 0 --service-cidr 10.96.0.0/24,fd00:10:96::/112 --kubeconfig "$kubeconfig"
bin/conformance differential replay --kubeconfig "$kubeconfig"
bin/conformance lab down --name "$name"
compare api
compare endpoints
compare dns
for mode in iptables nftables; do compare traffic --proxy-mode "$mode"; done
