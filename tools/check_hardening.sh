#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tools/check_hardening.sh <build folder>: fails unless the built program has what cmake/hardening.cmake asks for. Flags
# alone prove little, since a compiler may ignore them; the program alone does not show which sources lack them. So both
# are looked at.
set -eu
folder=$1
program=$folder/saker
commands=$folder/compile_commands.json
[ -x "$program" ] && [ -f "$commands" ] || {
  echo "$folder: no built program with compile commands: tools/build.sh release saker" >&2
  exit 1
}
failed=0

expect() {
  what=$1
  shift
  "$@" >/dev/null || {
    echo "$program: $what" >&2
    failed=1
  }
}

header=$(readelf --wide --file-header --program-headers --dynamic "$program")
symbols=$(nm --dynamic --undefined-only "$program")
header_has() { printf '%s\n' "$header" | grep -E "$1"; }
symbol() { printf '%s\n' "$symbols" | grep -E " U $1"; }
no_writable_code() { ! header_has '^ *(LOAD|GNU_STACK) .* RWE '; }

expect "is loaded at a fixed address, expected PIE" header_has 'FLAGS_1.* PIE( |$)'
expect "resolves functions while it runs, expected BIND_NOW" header_has '(FLAGS\).*BIND_NOW|FLAGS_1.* NOW( |$))'
expect "leaves its tables writable, expected RELRO" header_has '^ *GNU_RELRO '
expect "has memory that can be written and executed" no_writable_code
expect "guards no return address, expected __stack_chk_fail" symbol '__stack_chk_fail(@|$)'
expect "checks no copy, expected functions such as __memcpy_chk" symbol '__(mem|str|stp|vs?n?printf|read|pread)[a-z]*_chk(@|$)'
expect "checks no subscript, expected std::__glibcxx_assert_fail" symbol '_ZSt21__glibcxx_assert_fail'

# Sources of the program whose command lacks a flag; bodies of kernels stay without.
lacking=$(python3 - "$commands" <<'PYTHON'
import json, re, sys

for command in json.load(open(sys.argv[1])):
    source = re.search(r"/(saker|python)/[^ ]*\.cpp$", command["file"])
    # Objects of the program and of the Python module; tests compile some sources once more.
    program = re.search(r" -o (objects|python)/", command["command"])
    if not source or not program or re.search(r"saker_isa_[a-z0-9_]+\.dir", command["command"]):
        continue
    flags = ["-D_FORTIFY_SOURCE=3", "-fstack-protector-strong"]
    unwanted = []
    if "/saker/kernels/" not in command["file"]:
        flags.append("-D_GLIBCXX_ASSERTIONS")
        unwanted.append("-U_GLIBCXX_ASSERTIONS")
    words = command["command"].split()
    missing = [flag for flag in flags if flag not in words] + [flag for flag in unwanted if flag in words]
    if missing:
        print(f"{source.group()[1:]}: compiled {'with' if missing[0] in words else 'without'} {missing[0]}")
PYTHON
)
if [ -n "$lacking" ]; then
  printf '%s\n' "$lacking" | head -n 20 >&2
  failed=1
fi
exit "$failed"
