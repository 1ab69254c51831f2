#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_isa.sh <build folder>: fails when an object that is compiled for a special instruction
# set shares a function with the rest. The linker keeps one copy of a shared inline function; were
# it the AVX-512 one, the program would die on a machine without it, in code that never chose it.
set -eu
objects=$(find "$1" -path '*saker_isa_*' -name '*.o' ! -path '*saker_isa_portable*')
[ -n "$objects" ] || exit 0
# Weak text symbols, but for those in the sets' own namespaces.
shared=$(echo "$objects" | xargs nm --demangle --defined-only | grep -E '^[0-9a-f]+ [Ww] ' |
  grep -vE '(avx2|avx512|avx512_vnni|avx512_bf16|amx|neon|neon_bf16)::' | cut -d ' ' -f 3- | sort -u || true)
if [ -n "$shared" ]; then
  echo "functions that special instruction sets share with the rest:"
  echo "$shared"
  exit 1
fi
