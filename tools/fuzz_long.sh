#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/fuzz_long.sh [hours [executions]]: fuzzes all targets in turn, ten minutes each (SLICE
# seconds), until the hours are over (default 8) or all together have run so many inputs (default
# 10^8), at least one turn each. Corpora stay in build/fuzz/corpus/, findings in
# build/fuzz/findings/; build/fuzz/report.md says what ran, over all calls (build/fuzz/turns.tsv has
# the turns). Fails when there was a finding. BUILT=1 takes the programs as they are.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
hours=${1:-8}
goal=${2:-100000000}
slice=${SLICE:-600}
turns=build/fuzz/turns.tsv
report=build/fuzz/report.md
[ "${BUILT:-}" = 1 ] || tools/build.sh fuzz fuzz
mkdir -p build/fuzz/corpus build/fuzz/findings build/fuzz/logs
touch "$turns"
# Leaks are looked for when a program ends: after each input (-detect_leaks=1) it took nine tenths of
# the time of targets that fill caches of their libraries.
# Targets that need files keep them in memory where the system has such a folder.
files=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")/saker-fuzz.XXXXXX")
trap 'rm -rf "$files"' EXIT
trap 'exit 1' INT TERM

# What final statistics and the last line of progress say: runs, seconds, coverage, features.
turn_of() {
  awk -v seconds="$2" '
    /^stat::number_of_executed_units:/ { runs = $2 }
    /cov: / { for (i = 1; i < NF; ++i) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1) } }
    END { printf "%d\t%d\t%d\t%d", runs, seconds, cov, ft }' "$1"
}

write_report() {
  {
    echo "| target | executions | seconds | a second | coverage | features | findings |"
    echo "|---|---:|---:|---:|---:|---:|---:|"
    awk -F '\t' '
      { runs[$1] += $2; seconds[$1] += $3; cov[$1] = $4; ft[$1] = $5; found[$1] += $6; all += $2; time += $3; bad += $6 }
      END {
        for (name in runs)
          printf "| %s | %d | %d | %d | %d | %d | %d |\n", name, runs[name], seconds[name],
            runs[name] / (seconds[name] > 0 ? seconds[name] : 1), cov[name], ft[name], found[name] | "sort"
        close("sort")
        printf "| all | %d | %d | %d | | | %d |\n", all, time, all / (time > 0 ? time : 1), bad
      }' "$turns"
  } >"$report.new"
  mv "$report.new" "$report"
}

fuzz() {
  name=$1
  log=build/fuzz/logs/$name.log
  mkdir -p "build/fuzz/corpus/$name"
  before=$(date +%s)
  status=0
  TMPDIR=$files "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$slice" -timeout=20 -rss_limit_mb=4096 \
    -detect_leaks=0 -print_final_stats=1 -artifact_prefix="build/fuzz/findings/$name-" \
    "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1 || status=$?
  found=0
  if [ "$status" != 0 ]; then
    found=1
    cp "$log" "build/fuzz/findings/$name-$before.log"
    echo "finding: build/fuzz/findings/$name-$before.log" >&2
  fi
  printf '%s\t%s\t%s\n' "$name" "$(turn_of "$log" $(($(date +%s) - before)))" "$found" >>"$turns"
  write_report
}

targets=$(find build/fuzz/tests/fuzz -maxdepth 1 -type f -name 'fuzz_*' -perm -u+x | sed 's/.*fuzz_//' | sort)
end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + hours * 3600 }')
turn=0
enough() { [ "$turn" != 0 ] && { [ "$(date +%s)" -ge "$end" ] || [ "$(awk -F '\t' '{ n += $2 } END { printf "%d", n >= '"$goal"' }' "$turns")" = 1 ]; }; }
while ! enough; do
  for name in $targets; do
    ! enough || break
    fuzz "$name"
  done
  turn=$((turn + 1))
done
cat "$report"
awk -F '\t' '$6 > 0 { bad = 1 } END { exit bad }' "$turns"
