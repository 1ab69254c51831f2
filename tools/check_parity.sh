#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_parity.sh <saker>: runs tools/parity.py, cache_parity.py and convert_parity.py in an environment of its own, build/parity.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
environment=build/parity
if ! cmp -s tools/parity_requirements.txt "$environment/installed.txt"; then
  tools/setup.sh checks
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r tools/parity_requirements.txt
  cp tools/parity_requirements.txt "$environment/installed.txt"
fi
"$environment/bin/python" tools/parity.py --saker "$1"
"$environment/bin/python" tools/cache_parity.py --saker "$1"
"$environment/bin/python" tools/convert_parity.py --saker "$1"
