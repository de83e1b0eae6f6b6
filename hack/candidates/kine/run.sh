#!/usr/bin/env bash
# Judges kube-apiserver on kine instead of etcd: run.sh [BACKEND]. Further arguments go to `conformance run`.
#   sqlite (the default), postgresql, mariadb, nats (its embedded server), t4 (local), memory
# sqlite needs a C compiler; postgresql and mariadb need the server of that name and root, since they run as a user of their own.
set -euo pipefail
cd "$(dirname "$0")/../../.."
backend=sqlite
case ${1-} in
sqlite | postgresql | mariadb | nats | t4 | memory)
  backend=$1
  shift
  ;;
esac
version=v0.17.5
kine=${XDG_CACHE_HOME:-$HOME/.cache}/conformance/candidates/kine-$version
if ! [ -x "$kine/kine" ]; then
  mkdir -p "$kine"
  GOBIN=$kine CGO_ENABLED=1 nice go install -trimpath -tags nats "github.com/k3s-io/kine@$version"
fi
make -s build
export PATH=$PWD/hack/candidates/kine:$kine:$PATH
if [ -n "${BUNDLE-}" ]; then # hack/publish.sh
  judge=(certify --implementation "$IMPLEMENTATION" --out "$BUNDLE")
else
  judge=(run --suite allocation,apischema --report-dir "${REPORT_DIR:-conformance-report}/kine-$backend")
fi
exec bin/conformance "${judge[@]}" --tier lab --etcd-command "storage.sh $backend {endpoint} {data}" "$@"
