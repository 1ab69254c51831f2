#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# page/test/bundle.sh: fails when page/dist is not what its sources give.
set -eu
cd "$(dirname "$0")/.."
node node_modules/typescript/bin/tsc
node build.mjs rebuilt
diff -rq dist rebuilt || {
  echo "page/dist is not what page/src gives: npm ci && npm run build" >&2
  exit 1
}
