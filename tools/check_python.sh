#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_python.sh: builds the wheel of the Python package, installs it in an environment of its own,
# build/check_python, and runs all of tests/python on it, and pyright on the examples.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
tools/setup.sh
environment=build/check_python
tools/python_environment.sh "$environment" tests/python/check_requirements.txt
rm -rf build/wheels
# Compiler and warnings of the release build, whose objects a compiler cache then has.
CXX=${CXX:-c++} "$environment/bin/pip" wheel --quiet --disable-pip-version-check --no-deps -w build/wheels ./python \
  -C cmake.define.SAKER_WARNINGS_AS_ERRORS=ON
"$environment/bin/pip" uninstall --quiet --disable-pip-version-check -y saker
"$environment/bin/pip" install --quiet --disable-pip-version-check build/wheels/saker-*.whl
"$environment/bin/pip" check --disable-pip-version-check
export HF_HUB_OFFLINE=1 HF_DATASETS_CACHE="$PWD/build/check_python/datasets" PYTHONDONTWRITEBYTECODE=1
python="$PWD/$environment/bin/python"
cd tests/python
"$python" -m unittest -b caches_test caches_mlx_lm_test convert_test draft_test generate_test options_test prompt_cache_test pull_test \
  representation_test score_test views_test sway_test types_test lm_eval_test agreement_test
cd ../..
echo '{"include": ["../../examples/python"], "typeCheckingMode": "standard"}' >build/check_python/pyrightconfig.json
"$environment/bin/basedpyright" -p build/check_python/pyrightconfig.json --pythonpath "$python" --level error
"$environment/bin/saker" run -p "What does a fox eat?" --max-tokens 8
for example in chat scores; do "$python" "examples/python/$example.py" >/dev/null; done
