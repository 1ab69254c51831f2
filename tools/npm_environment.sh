#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/npm_environment.sh <folder> <folder of package.json>: these packages of npm; does nothing where they are there already.
set -eu
exec </dev/null
folder=$1 wanted=$2
cmp -s "$wanted/package-lock.json" "$folder/installed.json" && exit 0
rm -rf "$folder"
mkdir -p "$folder"
cp "$wanted/package.json" "$wanted/package-lock.json" "$folder"
(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error)
cp "$wanted/package-lock.json" "$folder/installed.json"
