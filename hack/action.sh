#!/usr/bin/env bash
# What the GitHub action (action.yml) runs: judges what its inputs name, and shows the report as the summary of the step. It ends as `conformance run` does.
set -uo pipefail
program=${CONFORMANCE:-$(dirname "$0")/../bin/conformance}
arguments=(run --tier "$TIER" --report-dir "$REPORT_DIR")
for suite in $SUITES; do arguments+=(--suite "$suite"); done
for range in $SERVICE_CIDRS; do arguments+=(--service-cidr "$range"); done
if [ -n "$KUBERNETES_VERSION" ]; then arguments+=(--kubernetes-version "$KUBERNETES_VERSION"); fi
set -f # a glob is for conformance, not for the shell
# shellcheck disable=SC2206 # the input is split on purpose
arguments+=($ARGUMENTS)
"$program" "${arguments[@]}"
code=$?
echo "exit-code=$code" >>"${GITHUB_OUTPUT:-/dev/null}"
if [ -f "$REPORT_DIR/report.md" ] && [ "$code" != 64 ]; then # wrong usage leaves the report of another run
  cat "$REPORT_DIR/report.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
exit "$code"
