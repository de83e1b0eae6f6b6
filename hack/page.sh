#!/usr/bin/env bash
# Renders pages of runs on the reference and the website of reports/, and looks at them in a real browser: page.sh [FOLDER]. Needs Chromium, and npm to fetch
# axe-core, which looks for what keeps people out. SCREENSHOTS names a folder to put pictures into.
set -euo pipefail
cd "$(dirname "$0")/.."
axe_version=4.10.3
folder=$(mkdir -p "${1:-conformance-report/pages}" && cd "${1:-conformance-report/pages}" && pwd)
if [ ! -f "$folder/package/axe.min.js" ]; then
  (cd "$folder" && npm pack --silent "axe-core@$axe_version" && tar xzf "axe-core-$axe_version.tgz")
fi
bin/conformance run --report-dir "$folder/conformant" >"$folder/conformant.log"
bin/conformance run --report-dir "$folder/faulty" --fault lower-band-first,no-affinity >"$folder/faulty.log" || [ $? -eq 1 ]
bin/conformance report site reports --out "$folder/site"
cd hack/pagetest
PAGES=$folder SITE=$folder/site AXE=$folder/package go test -count=1 -timeout 40m ./...
