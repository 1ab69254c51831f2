#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_real.sh <saker>: real trained models, which packages of PyPI carry, against the float32 truth, recorded answers
# and needles in long prompts (tests/real/check_real.py), vectors of EmbeddingGemma and all-MiniLM-L6-v2
# (tests/real/check_embeddings.py), and a chat of ten turns with detours (tests/real/check_chat.py). Models and the
# environment stay in build/real: 4 GB.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
environment=build/real/environment
tools/python_environment.sh "$environment" tests/real/requirements.txt
"$environment/bin/python" tests/real/check_real.py --saker "$(realpath "$1")" --models build/real
"$environment/bin/python" tests/real/check_embeddings.py --saker "$(realpath "$1")" --models build/real
python3 tests/real/check_chat.py --saker "$(realpath "$1")" --model build/real/SmolLM2-135M-Instruct.Q4_1.gguf
