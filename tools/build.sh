#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/build.sh <preset> <target>...: configures once and builds. With ISA_SETS=native it compiles for this machine's
# instruction sets alone; a later build without that adds the others. Talks to stderr, never reads stdin. Says how far
# it is: on a terminal with each step, otherwise every 15 seconds (PROGRESS).
set -eu
exec </dev/null 1>&2
cd "$(dirname "$0")/.."
preset=$1
shift
folder=build/$preset
configure() {
  mkdir -p "$folder"
  if ! cmake --preset "$preset" "$@" >"$folder/configure.log" 2>&1; then
    tail -n 30 "$folder/configure.log"
    exit 1
  fi
}
if [ ! -f "$folder/build.ninja" ]; then
  echo "Configuring $folder: MLX and the Rust crates are fetched once, the first build takes minutes"
  configure ${ISA_SETS:+"-DSAKER_ISA_SETS=$ISA_SETS"}
elif [ "$preset" = release ] && [ -z "${ISA_SETS:-}" ] && grep -q '^SAKER_ISA_SETS:.*=native$' "$folder/CMakeCache.txt"; then
  configure -USAKER_ISA_SETS
fi
export NINJA_STATUS='[%f of %t, %e s] '
if [ -t 2 ]; then
  exec cmake --build --preset "$preset" --target "$@"
fi
# Of the steps one line now and then; all else, such as a compiler's words, as it comes. Not by awk, which may wait for
# more lines before it reads the first.
show() {
  last=-${PROGRESS:-15}
  while IFS= read -r line; do
    case $line in
      '['*' of '*' s] '*)
        counts=${line#[}
        seconds=${line#*, }
        seconds=${seconds%%.*}
        if [ "$seconds" -ge $((last + ${PROGRESS:-15})) ]; then
          last=$seconds
          steps=${counts#* of }
          printf 'building %s: %d of %d steps, %d s\n' "$*" "${counts%% *}" "${steps%%,*}" "$seconds"
        fi
        ;;
      'ninja: no work to do.') ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}
{ status=$({ { cmake --build --preset "$preset" --target "$@" 2>&1 && echo 0 >&4 || echo 1 >&4; } | show "$@" >&3; } 4>&1); } 3>&1
exit "$status"
