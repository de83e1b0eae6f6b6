#!/usr/bin/env bash
# Has a report read by the programs that others read it with: readers.sh [FOLDER]. Needs the Python module junitparser (Debian: python3-junitparser).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mkdir -p "${1:-conformance-report/readers}" && cd "${1:-conformance-report/readers}" && pwd)
bin/conformance run --report-dir "$folder" --metrics "$folder/metrics.txt" --fault lower-band-first,no-affinity >"$folder/run.log" || [ $? -eq 1 ]
(cd hack/readers && REPORT=$folder go test -count=1 ./...)
python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import junitparser' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "readers: no Python has the module junitparser: install it (Debian: apt-get install python3-junitparser)" >&2
  exit 64
fi
"$python" - "$folder" <<'END'
import json
import sys

from junitparser import JUnitXml

folder = sys.argv[1]
checks = json.load(open(folder + "/report.json"))["checks"]
read = JUnitXml.fromfile(folder + "/junit_01.xml")
cases = [case.classname + ": " + case.name for suite in read for case in suite]
print(f"junitparser: {len(cases)} cases, {read.failures} failures, {read.errors} errors")
if len(cases) != len(checks) or len(set(cases)) != len(cases) or not 0 < read.failures < len(checks) or read.errors:
    sys.exit("readers: junitparser does not read what the report says")
END
