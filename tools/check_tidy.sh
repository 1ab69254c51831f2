#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-tidy on the sources that differ from a base (default: the last commit but one), at most 12
# of them: `make check-tidy` takes all. Uses the release build's compile commands.
set -eu
cd "$(dirname "$0")/.."
base=${1:-HEAD~1}
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || base=$(git hash-object -t tree /dev/null)
changed=$(git diff --name-only --diff-filter=d "$base" -- 'saker/*.cpp' 'tests/*.cpp' | head -n 12)
for file in $changed; do
  grep -q "\"file\": \".*/$file\"" build/release/compile_commands.json || continue
  echo "$file"
  clang-tidy-19 --quiet --extra-arg=-Wno-unknown-warning-option -p build/release "$file"
done
