#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_all.sh CHECK...: makes each target, goes on after one that failed, and says at the end how long each took and
# which failed. What each wrote stays in build/checks/CHECK.log. Fails when one failed.
set -u
trap 'exit 130' INT TERM
logs=build/checks
mkdir -p "$logs"
summary=""
failed=""
for check in "$@"; do
  log=$logs/$check.log
  begin=$(date +%s)
  printf '\n== %s (%s)\n' "$check" "$(date +%H:%M:%S)"
  # The pipe's status is tee's.
  { ${MAKE:-make} --no-print-directory "$check" 2>&1 || : >"$log.failed"; } | tee "$log"
  result=passed
  if [ -e "$log.failed" ]; then
    rm -f "$log.failed"
    result=FAILED
    failed="$failed $check"
  fi
  summary="$summary$(printf '%-20s %s, %d s' "$check" "$result" $(($(date +%s) - begin)))
"
done
printf '\n%s' "$summary"
[ -z "$failed" ] || {
  echo "failed:$failed (see $logs)"
  exit 1
}
