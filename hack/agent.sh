#!/usr/bin/env bash
# Runs a command, such as `go build`, that embeds the agent alone for each of the architectures that come before --. The agent lies in a temporary folder, which an
# overlay of the go tool puts in the place of internal/agent/embedded/programs: no later build can embed one of older sources.
# Flags that change how packages are compiled belong into GOFLAGS: then the command compiles nothing again that the agent has.
#   hack/agent.sh amd64 arm64 -- go build ./cmd/conformance
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
entries=
while [ "${1:?usage: hack/agent.sh ARCHITECTURE... -- COMMAND}" != -- ]; do
  echo "build the agent for linux/$1, which the program carries" >&2
  (cd "$root" && GOOS=linux GOARCH=$1 CGO_ENABLED=0 go build -buildvcs=false -ldflags="-s -w" -o "$work/agent" ./cmd/conformance-agent)
  gzip -9nc "$work/agent" >"$work/agent-linux-$1.gz"
  entries+="${entries:+,}\"$root/internal/agent/embedded/programs/agent-linux-$1.gz\":\"$work/agent-linux-$1.gz\""
  shift
done
shift
echo "build the program: $*" >&2
echo "{\"Replace\":{$entries}}" >"$work/overlay.json"
GOFLAGS="${GOFLAGS-$(go env GOFLAGS)} -overlay=$work/overlay.json" "$@"
