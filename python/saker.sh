#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command `saker` of the Python package: runs the program in it. No Python starts, so that completing a line takes no time.
here=$(dirname "$(readlink -f "$0")")
for lib in "$here/../lib" "$here/../local/lib" "$here/../lib64"; do
  for packages in site-packages dist-packages; do
    program=$lib/@PYTHON@/$packages/saker/bin/saker
    [ ! -x "$program" ] || exec "$program" "$@"
  done
done
echo "saker: the package is not beside $here; 'python3 -m saker' runs it" >&2
exit 1
