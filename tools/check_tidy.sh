#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_tidy.sh [BASE | --all]: clang-tidy on the sources that differ from BASE, or on all of
# them; of each header that differs, on one source that includes it. Without an argument BASE is
# where this branch left main, as the remote has it, or where it has not, the commit 20 before.
# Takes the tidy preset's compile commands, so that nothing has to be built; JOBS is how many run at
# a time (default: one a processor).
set -eu
exec </dev/null
cd "$(dirname "$0")/.."

default_base() {
  for main in upstream/main origin/main; do
    base=$(git merge-base "$main" HEAD 2>/dev/null) || continue
    if [ "$base" != "$(git rev-parse HEAD)" ]; then
      echo "$base"
      return
    fi
  done
  # In a shorter history everything is new.
  git rev-parse --quiet --verify 'HEAD~20^{commit}' || git hash-object -t tree /dev/null
}

# Paths that differ from $base and match the patterns given.
changed() {
  git diff --name-only --diff-filter=d "$base" -- "$@"
}

one_source_of() {
  git grep --name-only --fixed-strings "#include \"$1\"" -- 'saker/*.cpp' 'python/*.cpp' 'tests/*.cpp' | head -n 1
}

if [ "${1:-}" = --all ]; then
  files=$(git ls-files 'saker/*.cpp' 'python/*.cpp' 'tests/*.cpp' 'examples/*.cpp')
else
  base=${1:-$(default_base)}
  files=$({
    changed 'saker/*.cpp' 'python/*.cpp' 'tests/*.cpp' 'examples/*.cpp'
    for header in $(changed 'include/*.h' 'saker/*.h' 'tests/*.h'); do
      one_source_of "$header"
    done
  } | sort -u)
fi
[ -n "$files" ] || exit 0

if ! configured=$(cmake --preset tidy 2>&1); then
  echo "$configured" >&2
  exit 1
fi
# One finding fails the check, after all files were looked at. What no command compiles, such as
# fuzz programs, is left out.
for file in $files; do
  ! grep -q "\"file\": \".*/$file\"" build/tidy/compile_commands.json || echo "$file"
done | xargs -r -P "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -n 1 sh -c '
  echo "$1"
  found=$(clang-tidy-19 --quiet -p build/tidy "$1" 2>&1) || { echo "$found" && exit 1; }' check
