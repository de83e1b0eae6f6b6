#!/usr/bin/env bash
# Builds the archives of a release into the folder that is named, for each of PLATFORMS, and SHA256SUMS beside them. The same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: hack/release.sh FOLDER}
version=$(git describe --tags --always --dirty)
epoch=$(git log -1 --format=%ct)
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# For both programs, see hack/agent.sh.
GOFLAGS="$(go env GOFLAGS) -trimpath"
export GOFLAGS
for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
  os=${platform%/*} arch=${platform#*/}
  name=conformance_${version}_${os}_${arch}
  mkdir "$work/$name"
  program=conformance
  if [ "$os" = windows ]; then program=conformance.exe; fi
  GOOS=$os GOARCH=$arch CGO_ENABLED=0 hack/agent.sh amd64 arm64 -- go build -buildvcs=true -ldflags=-s -o "$work/$name/$program" ./cmd/conformance
  cp LICENSE README.md "$work/$name/"
  tar --create --directory "$work" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=go=rX,u=rwX "$name" | gzip -n >"$out/$name.tar.gz"
  echo "$name.tar.gz"
done
(cd "$out" && sha256sum conformance_"$version"_*.tar.gz >SHA256SUMS)
