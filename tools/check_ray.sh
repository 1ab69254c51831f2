#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_ray.sh <folder of the Python package> [options of tests/ray/job_test.py]: a job on a cluster of two nodes,
# whose actors and driver are killed. Ray is installed into build/check_ray.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
package=$(realpath "$1")
shift
tools/python_environment.sh build/check_ray tests/ray/requirements.txt
export RAY_DATA_DISABLE_PROGRESS_BARS=1 RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled PYTHONDONTWRITEBYTECODE=1
PYTHONPATH="$package" build/check_ray/bin/python tests/ray/job_test.py "$@"
