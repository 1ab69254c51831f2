#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/demo_model/smoke.sh <saker>: trains for a few steps in an environment of its own, build/demo_model, and lets
# mlx-lm and saker run the result.
set -eu
exec </dev/null
cd "$(dirname "$0")/../.."
environment=build/demo_model
requirements=tools/demo_model/requirements.txt
if ! cmp -s "$requirements" "$environment/installed.txt"; then
  tools/setup.sh checks
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$environment/installed.txt"
fi
SAKER_PROGRAM=$(realpath "$1") "$environment/bin/python" tests/demo_model/test_smoke.py
