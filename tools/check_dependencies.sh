#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_dependencies.sh [--offline]: licences, sources and bans of all crates (rust/deny.toml), and the bill of
# materials in build/sbom.cdx.json. Without --offline also advisories and yanked versions, for which cargo-deny fetches
# RustSec's database by git. Crates come from the registry either way.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
tools/python_environment.sh build/deps/cargo_deny tools/cargo_deny_requirements.txt
PATH=$PATH:$HOME/.cargo/bin
deny=$PWD/build/deps/cargo_deny/bin/cargo-deny
checks="bans licenses sources"
offline=--offline
if [ "${1:-}" != --offline ]; then
  checks="$checks advisories"
  offline=
fi
(
  cd rust
  cargo fetch --quiet --locked # Crates of other systems too: a build takes its own alone.
  # shellcheck disable=SC2086
  "$deny" --locked $offline check --hide-inclusion-graph $checks
)
python3 tools/make_sbom.py build/sbom.cdx.json
