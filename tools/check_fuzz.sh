#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_fuzz.sh [seconds each]: runs every fuzz program from what tests/fuzz/corpus keeps, with another seed each time,
# two a processor at a time; findings stay in build/fuzz/findings/.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
seconds=${1:-60}
tools/build.sh fuzz fuzz
mkdir -p build/fuzz/findings
# Targets that need files keep them in memory where the system has such a folder.
TMPDIR=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/saker-fuzz.XXXXXX")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
trap 'exit 1' INT TERM
find build/fuzz/tests/fuzz -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sort |
  xargs -P $((2 * $(getconf _NPROCESSORS_ONLN))) -n 1 sh -c '
    name=${2##*/fuzz_}
    work=build/fuzz/corpus/$name
    mkdir -p "$work"
    log=build/fuzz/findings/$name.log
    if "$2" -max_total_time="$1" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 -detect_leaks=0 \
      -artifact_prefix="build/fuzz/findings/$name-" "$work" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
      echo "$name: $(sed -n "s/^stat::number_of_executed_units: *//p" "$log") inputs in $1 s, seed $(sed -n "s/^INFO: Seed: *//p" "$log")"
    else
      tail -n 40 "$log"
      exit 1
    fi' check "$seconds"
