#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/python_environment.sh <folder> <requirements> [<python>]: a virtual environment with these packages; does nothing
# where it is there already.
set -eu
exec </dev/null
folder=$1 requirements=$2 python=${3:-python3}
cmp -s "$requirements" "$folder/installed.txt" && exit 0
rm -rf "$folder"
"$python" -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
cp "$requirements" "$folder/installed.txt"
