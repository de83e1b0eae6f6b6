#!/usr/bin/env bash
# Runs a command, such as `go build`, while the agent alone lies where conformance embeds it, for each of the architectures that come before --.
# It does not stay there: a build that does not go this way must not embed an agent of older sources.
#   hack/agent.sh amd64 arm64 -- go build ./cmd/conformance
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
programs=$root/framework/agent/embedded/programs
exec 9>>"$programs/.lock"
flock 9 # another build puts its own there
trap 'rm -f "$programs"/agent-linux-*.gz' EXIT
rm -f "$programs"/agent-linux-*.gz
while [ "${1:?usage: hack/agent.sh ARCHITECTURE... -- COMMAND}" != -- ]; do
  (cd "$root" && GOOS=linux GOARCH=$1 CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags="-s -w" -o "$programs/agent" ./cmd/conformance-agent)
  gzip -9nc "$programs/agent" >"$programs/agent-linux-$1.gz"
  rm "$programs/agent"
  shift
done
shift
"$@" 9>&-
