#!/usr/bin/env bash
# The prose linter on everything that people read: documents, the texts of requirements (docs/specification.md) and the help of all commands.
# VALE names a program; without it the one of the tools module is built.
set -euo pipefail
cd "$(dirname "$0")/.."
vale=(${VALE:-go tool -modfile=tools/go.mod vale})
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT

# help writes the help of a command, and of those below it, as paragraphs. Flags are one paragraph each.
help() {
  local out
  out=$(bin/conformance "$@" --help)
  printf '%s\n' "$out" | sed '/^Examples:/,/^$/d; /^Usage:/,/^$/d; /^Use "/d; s/^[A-Z][A-Za-z ]*:$//' |
    sed -E 's/^ +(-[a-z], )?--[a-z-]+( [a-zA-Z]+(\[[^]]*\])?)? +(.*)/\n- \4/; s/^  [a-z0-9-]+ +(.*)/\n- \1/' >"$texts/$(IFS=-; echo "help${*:+-}$*").md"
  local command
  while read -r command; do help "$@" "$command"; done < <(printf '%s\n' "$out" |
    sed -n '/^Available Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' | grep -vE '^(help|completion)$')
}
help
"${vale[@]}" --config .vale.ini $(git ls-files '*.md' | grep -vE '^(docs/scorecard|docs/coverage|reports/.*|hack/candidates/[^/]*/defects/.*)\.md$') "$texts"
