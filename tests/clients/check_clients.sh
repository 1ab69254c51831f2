#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/clients/check_clients.sh BUILD: coding agents, Python's frameworks and lm-evaluation-harness against the servers that are built in
# BUILD. Installs 4 GB of packages from npm and PyPI below build/clients, once. Goes on after a failure, and names at the end what failed.
set -u
exec </dev/null
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
clients=$root/build/clients
export SAKER_FAKE_SERVER="$build/tests/server/fake_server" SAKER_PROGRAM="$build/saker" PYTHONDONTWRITEBYTECODE=1
failed=""
mkdir -p "$clients"
cd "$here" || exit 1

check() {
  name=$1
  shift
  printf '== %s\n' "$name"
  "$@" || failed="$failed $name"
}

environment() {
  "$root/tools/python_environment.sh" "$clients/$1" "$here/$1_requirements.txt" || failed="$failed $1:install"
}

for name in aider frameworks instructor llama_index lm_eval; do
  environment "$name"
done
"$root/tools/npm_environment.sh" "$clients/agents" "$here/agents" || failed="$failed agents:install"
# The packages' own set-up, without which these two have no program.
(cd "$clients/agents/node_modules/opencode-ai" && node ./postinstall.mjs >/dev/null) || failed="$failed opencode:install"
(cd "$clients/agents/node_modules/@anthropic-ai/claude-code" && node install.cjs >/dev/null) || failed="$failed claude:install"

export SAKER_AGENTS="$clients/agents/node_modules/.bin" SAKER_AIDER="$clients/aider/bin/aider"
for agent in aider claude codex continue opencode pi qwen; do
  check "$agent" python3 -m unittest "agents_test.Agents.test_$agent"
done
check frameworks env SAKER_FRAMEWORKS="agents langchain_openai litellm pydantic_ai" "$clients/frameworks/bin/python" -m unittest frameworks_test
check instructor env SAKER_FRAMEWORKS=instructor "$clients/instructor/bin/python" -m unittest frameworks_test
check llama_index env SAKER_FRAMEWORKS=llama_index "$clients/llama_index/bin/python" -m unittest frameworks_test
check lm_eval "$clients/lm_eval/bin/python" -m unittest lm_eval_test
(cd "$root/tests/e2e" && SAKER_LOAD_CLIENTS=64 SAKER_LOAD_REQUESTS=20 python3 -m unittest serve_load_test) || failed="$failed load"
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
