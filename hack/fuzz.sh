#!/usr/bin/env bash
# Runs every fuzz target of the module for a while each: fuzz.sh [TIME].
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r package; do
  for target in $(grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | sed 's/^func //' | sort -u); do
    echo "fuzz $package $target ($time)"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package"
  done
done
