#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/build.sh <preset> <target>...: configures once and builds. Talks to stderr, never reads stdin. Says how far
# it is: on a terminal with each step, otherwise every 15 seconds (PROGRESS).
set -eu
exec </dev/null 1>&2
cd "$(dirname "$0")/.."
preset=$1
shift
folder=build/$preset
if [ ! -f "$folder/build.ninja" ]; then
  echo "Configuring $folder: MLX and the Rust crates are fetched once, the first build takes minutes"
  mkdir -p "$folder"
  if ! cmake --preset "$preset" >"$folder/configure.log" 2>&1; then
    tail -n 30 "$folder/configure.log"
    exit 1
  fi
fi
export NINJA_STATUS='[%f of %t, %e s] '
if [ -t 2 ]; then
  exec cmake --build --preset "$preset" --target "$@"
fi
# Of the steps one line now and then; all else, such as a compiler's words, as it comes.
{ status=$({ { cmake --build --preset "$preset" --target "$@" 2>&1 && echo 0 >&4 || echo 1 >&4; } |
  awk -v every="${PROGRESS:-15}" -v what="$*" '
    /^\[[0-9]+ of [0-9]+, [0-9.]+ s\] / {
      now = substr($4, 1) + 0
      if (now >= last + every) {
        last = now
        printf "building %s: %d of %d steps, %d s\n", what, substr($1, 2), $3, now
        fflush()
      }
      next
    }
    /^ninja: no work to do[.]$/ { next }
    { print; fflush() }' >&3; } 4>&1); } 3>&1
exit "$status"
