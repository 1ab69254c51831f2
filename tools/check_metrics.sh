#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_metrics.sh: promtool reads /metrics of a server with a scripted model that has answered. The names of vLLM have a
# colon, which its style forbids; it may find nothing else. Needs promtool (Debian's prometheus; tools/setup.sh all).
set -eu
cd "$(dirname "$0")/.."
command -v promtool >/dev/null || {
  echo "check_metrics: promtool is missing: tools/setup.sh all" >&2
  exit 1
}
tools/build.sh release fake_server
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
for text in Hello Goodbye; do
  curl -sf "$address/v1/chat/completions" -d "{\"messages\": [{\"role\": \"user\", \"content\": \"$text\"}]}" >"$folder/answer"
done
curl -sf "$address/metrics" >"$folder/metrics"
promtool check metrics <"$folder/metrics" >"$folder/found" 2>&1 || true
if grep -v "^vllm:[a-z0-9_]* metric names should not contain ':'$" "$folder/found"; then
  echo "check_metrics: promtool found the above" >&2
  exit 1
fi
echo "check_metrics: $(grep -c '^# TYPE' "$folder/metrics") metrics are well-formed"
