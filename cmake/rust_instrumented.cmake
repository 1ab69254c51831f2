# SPDX-License-Identifier: Apache-2.0
# The Rust library for clang's sanitizers and libFuzzer, on stable Rust, in a target folder of its own:
# - the crates' C code (Oniguruma) has the sanitizers of our own code;
# - Rust code has overflow checks, debug assertions and, for libFuzzer, counters of edges and traced comparisons.
# Stable Rust has no AddressSanitizer; memory of its allocator is malloc's, which the sanitizer watches for C code.
execute_process(COMMAND "${SAKER_CARGO}" -vV OUTPUT_VARIABLE _version)
string(REGEX MATCH "host: ([^\n]+)" _ "${_version}")
set(_rust_host "${CMAKE_MATCH_1}")
set(_rust_folder "${SAKER_DEPS_DIR}/rust-instrumented")

# With a target given, flags are not for build scripts and macros, which run while cargo builds.
set(_rust_arguments --profile fuzz --target "${_rust_host}")
set(_rust_output "${_rust_folder}/${_rust_host}/fuzz")
get_filename_component(_rust_cc "${CMAKE_CXX_COMPILER}" REALPATH)
get_filename_component(_rust_cc_folder "${_rust_cc}" DIRECTORY)
string(REPLACE ";" "," _rust_sanitize "${SAKER_SANITIZERS}")
# Oniguruma calls functions through pointers of other types, which works on all machines that it knows.
set(_rust_cflags "-fsanitize=${_rust_sanitize} -fno-sanitize=function -fno-sanitize-recover=all -fno-omit-frame-pointer -g1")
set(
  _rust_environment
  "CARGO_TARGET_DIR=${_rust_folder}" "CC=${_rust_cc_folder}/clang" "CFLAGS=${_rust_cflags}"
)
if("fuzzer-no-link" IN_LIST SAKER_SANITIZERS)
  set(_rust_flags "-Cpasses=sancov-module")
  foreach(_flag level=4 inline-8bit-counters pc-table trace-compares)
    string(APPEND _rust_flags " -Cllvm-args=-sanitizer-coverage-${_flag}")
  endforeach()
  list(APPEND _rust_environment "RUSTFLAGS=${_rust_flags}")
endif()
