#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_arm64.sh: builds the kernels' bodies for 64-bit ARM and runs their tests in emulation,
# once on a processor with everything and once on one of ARMv8.0, where instructions that it lacks
# would end the program.
set -eu
exec </dev/null
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}
for program in aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$program" >/dev/null || {
    echo "$program is missing: tools/setup.sh all" >&2
    exit 1
  }
done
tools/build.sh arm64 all
tools/check_isa.sh build/arm64
ctest --preset arm64 -j "$jobs"
echo "on ARMv8.0"
QEMU_CPU=cortex-a53 ctest --preset arm64 -j "$jobs" -R '[.](Dispatch|Vec|ThreadPool)|/(portable|neon)( |$)'
