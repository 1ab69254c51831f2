#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/build.sh <preset> <target>...: configures once and builds. Talks to stderr, never reads stdin.
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
if [ -t 2 ]; then
  cmake --build --preset "$preset" --target "$@"
else
  cmake --build --preset "$preset" --target "$@" -- --quiet
fi
