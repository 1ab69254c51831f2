#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# page/test/prepare.sh <folder>: the page's sources there, and the packages that it is built and tested with.
set -eu
cd "$(dirname "$0")/.."
../tools/npm_environment.sh "$1" .
rm -rf "$1/src" "$1/test" "$1/dist"
cp -R build.mjs index.html tsconfig.json src test dist "$1"
