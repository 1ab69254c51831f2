#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/make_docs.sh <folder of the package saker>: the reference in build/docs, cpp by doxygen and python by pdoc. Fails when one of
# the two warns.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
package=$1
environment=build/docs_environment
tools/python_environment.sh "$environment" tools/docs_requirements.txt
mkdir -p build/docs
rm -rf build/docs/cpp build/docs/python
doxygen docs/Doxyfile
PYTHONPATH=$package PYTHONWARNINGS=error "$environment/bin/pdoc" -o build/docs/python saker
echo "the reference is in build/docs: cpp/index.html, python/index.html"
