#!/usr/bin/env bash
# Judges kube-apiserver on kine with SQLite instead of etcd. Needs a C compiler for SQLite. Arguments go to `conformance run`.
set -euo pipefail
cd "$(dirname "$0")/../../.."
version=v0.17.5
kine=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/kine-$version
if ! [ -x "$kine/kine" ]; then
  mkdir -p "$kine"
  GOBIN=$kine CGO_ENABLED=1 nice go install -trimpath "github.com/k3s-io/kine@$version"
fi
make -s build
export PATH=$kine:$PATH
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  judge=(certify --implementation "$IMPLEMENTATION" --out "$BUNDLE")
else
  judge=(run --suite allocation,apischema --report-dir "${REPORT_DIR:-conformance-report}/kine-sqlite")
fi
# No check takes the power away, so SQLite need not wait for the disk.
exec bin/conformance "${judge[@]}" --tier lab \
  --etcd-command 'kine --listen-address={endpoint} --metrics-bind-address=0 --datastore-max-open-connections=4 "--endpoint=sqlite://{data}/state.db?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate&_synchronous=OFF"' "$@"
