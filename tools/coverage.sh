#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/coverage.sh [--publish]: which lines of the folders that read from outside run in their tests and in those of the
# program. Prints a table, with --publish into docs/coverage.md; fails where a folder is below 90 %.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
folders="load hub text adapters cache caches"
build=build/coverage
tools/setup.sh coverage
targets=saker
for folder in $folders; do targets="$targets ${folder}_tests"; done
# shellcheck disable=SC2086
tools/build.sh coverage $targets
find "$build/objects" -name '*.gcda' -delete
ctest --preset coverage -j "$(getconf _NPROCESSORS_ONLN)" --output-log "$build/tests.log" --quiet \
  -L "^($(echo "$folders e2e" | tr ' ' '|'))\$" -E '^(e2e[.]hub_package|e2e[.]hub_environment)$' ||
  { tail -n 60 "$build/tests.log"; exit 1; }
gcovr --root . --object-directory "$build" "$build/objects" \
  --filter "saker/($(echo "$folders" | tr ' ' '|'))/" \
  --json-summary "$build/coverage.json" >"$build/gcovr.log" 2>&1 || { tail -n 20 "$build/gcovr.log"; exit 1; }
python3 tools/coverage_table.py "$build/coverage.json" "$@"
