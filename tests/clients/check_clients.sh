#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/clients/check_clients.sh BUILD: coding agents, Python's frameworks and lm-evaluation-harness against the servers that
# are built in BUILD, and 64 clients at once. Installs 4 GB of packages from npm and PyPI below build/clients, once. Goes on
# after a failure, and names at the end what failed.
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

# check NAME FRAMEWORKS MODULE: the tests of a module with the packages of NAME_requirements.txt.
check() {
  printf '== %s\n' "$1"
  if "$root/tools/python_environment.sh" "$clients/$1" "$here/$1_requirements.txt"; then
    SAKER_FRAMEWORKS=$2 "$clients/$1/bin/python" -m unittest "$3" || failed="$failed $1"
  else
    failed="$failed $1:install"
  fi
}

# Packages of npm have programs for each system, of which a mirror may lack some: no lock file can name them all. The
# packages' own set-up, which makes two of the programs, is run here by name.
install_agents() {
  cmp -s agents/package.json "$clients/agents/installed.json" && return
  rm -rf "$clients/agents"
  mkdir -p "$clients/agents"
  cp agents/package.json "$clients/agents"
  (
    cd "$clients/agents" || exit 1
    npm install --ignore-scripts --no-audit --no-fund --no-package-lock --prefer-offline --loglevel=error &&
      (cd node_modules/opencode-ai && node ./postinstall.mjs >/dev/null) &&
      (cd node_modules/@anthropic-ai/claude-code && node install.cjs >/dev/null) &&
      cp package.json installed.json
  )
}

printf '== agents\n'
export SAKER_AGENTS="$clients/agents/node_modules/.bin" SAKER_AIDER="$clients/aider/bin/aider"
install_agents || failed="$failed agents:install"
"$root/tools/python_environment.sh" "$clients/aider" "$here/aider_requirements.txt" || failed="$failed aider:install"
for agent in aider claude codex continue opencode pi qwen; do
  python3 -m unittest "agents_test.Agents.test_$agent" || failed="$failed $agent"
done
check frameworks "agents langchain_openai litellm pydantic_ai" frameworks_test
check instructor instructor frameworks_test
check llama_index llama_index frameworks_test
check lm_eval "" lm_eval_test
printf '== load\n'
(cd "$root/tests/e2e" && SAKER_LOAD_CLIENTS=64 SAKER_LOAD_REQUESTS=20 python3 -m unittest serve_load_test) || failed="$failed load"
[ -z "$failed" ] || {
  echo "failed:$failed"
  exit 1
}
