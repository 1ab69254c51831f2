#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_fuzz.sh [seconds each]: runs every fuzz program from its seeds; findings stay in
# build/fuzz/findings/.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
seconds=${1:-60}
tools/build.sh fuzz fuzz
for program in build/fuzz/tests/fuzz/fuzz_*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  name=${program##*/fuzz_}
  work=build/fuzz/corpus/$name
  mkdir -p "$work" build/fuzz/findings
  log=build/fuzz/findings/$name.log
  echo "fuzzing $name for $seconds s"
  "$program" -seed=1 -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -detect_leaks=0 \
    -artifact_prefix="build/fuzz/findings/$name-" "$work" "tests/fuzz/corpus/$name" >"$log" 2>&1 || {
    tail -n 40 "$log"
    exit 1
  }
  grep -E 'number_of_executed_units' "$log"
done
