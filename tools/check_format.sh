#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails when a C++ file is not as clang-format 19 writes it; --fix rewrites the files.
set -eu
cd "$(dirname "$0")/.."
formatter=$(command -v clang-format-19 || command -v clang-format) || {
  echo "clang-format 19 is missing: tools/setup.sh checks" >&2
  exit 1
}
case $("$formatter" --version) in
  *" 19."*) ;;
  *) echo "$formatter is not version 19: $("$formatter" --version)" >&2 && exit 1 ;;
esac
mode="--dry-run --Werror"
[ "${1:-}" = --fix ] && mode="-i"
# shellcheck disable=SC2086
git ls-files -z '*.h' '*.cpp' | xargs -0 -r -n 32 "$formatter" $mode
