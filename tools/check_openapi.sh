#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_openapi.sh [EXAMPLES]: schemathesis makes requests from /openapi.json and sends them to a server with a scripted
# model, EXAMPLES (25) to each route. No answer may be a 5xx. Needs PyPI once.
set -eu
cd "$(dirname "$0")/.."
examples=${1:-25}
environment=$PWD/build/openapi_environment
tools/build.sh release fake_server
tools/python_environment.sh "$environment" tools/openapi_requirements.txt
folder=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT
echo '[]' >"$folder/script.json"
build/release/tests/server/fake_server "$folder/script.json" 0 >"$folder/address" 2>"$folder/log" &
server=$!
for _ in $(seq 100); do
  [ ! -s "$folder/address" ] || break
  sleep 0.1
done
address=$(head -n 1 "$folder/address")
cd "$folder"  # It leaves a cache where it runs.
# The routes that are not here say 501.
"$environment/bin/st" run "$address/openapi.json" --checks not_a_server_error --max-examples "$examples" --seed 1 --no-color \
  --exclude-path-regex '^/api/(pull|push|create|copy|delete)$' --exclude-deprecated
kill -0 "$server"
