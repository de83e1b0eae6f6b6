#!/usr/bin/env bash
# Runs every fuzz target of the module with so many inputs each: fuzz.sh [RUNS].
# A number, not a time: Go before 1.27 may call the end of the time a failure (go.dev/issue/75804).
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-200000}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r package; do
  for target in $(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | sed 's/^func //' | sort -u); do
    echo "fuzz $package $target ($runs inputs)"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "${runs}x" "$package"
  done
done
