# SPDX-License-Identifier: Apache-2.0
# Target `saker_rs`: the Rust static library of rust/, built by cargo from its lock file.
# All builds take the same release library, but for those of clang that look for more than races: docs/fuzzing.md
# says what is instrumented there and what stable Rust has no means for.

set(SAKER_RUST_MINIMUM 1.87)
set(_rust "${PROJECT_SOURCE_DIR}/rust")
if(NOT EXISTS "${_rust}/Cargo.toml" OR NOT EXISTS "${_rust}/Cargo.lock")
  message(FATAL_ERROR "${_rust} must hold Cargo.toml and Cargo.lock")
endif()
find_program(SAKER_CARGO cargo HINTS "$ENV{HOME}/.cargo/bin")
if(NOT SAKER_CARGO)
  message(FATAL_ERROR "cargo is missing: tools/setup.sh says which package to take")
endif()
execute_process(COMMAND "${SAKER_CARGO}" --version OUTPUT_VARIABLE _version)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" _version "${_version}")
if(_version VERSION_LESS SAKER_RUST_MINIMUM)
  message(
    FATAL_ERROR
    "${SAKER_CARGO} is ${_version}, expected ${SAKER_RUST_MINIMUM} or newer: "
    "tools/setup.sh says which package to take"
  )
endif()

file(GLOB_RECURSE _rust_sources CONFIGURE_DEPENDS "${_rust}/src/*.rs")
set(_rust_environment "CARGO_TARGET_DIR=${SAKER_DEPS_DIR}/rust")
set(_rust_arguments --release)
set(_rust_output "${SAKER_DEPS_DIR}/rust/release")
if("address" IN_LIST SAKER_SANITIZERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  include(rust_instrumented)
endif()
set(_rust_library "${CMAKE_STATIC_LIBRARY_PREFIX}saker_rs${CMAKE_STATIC_LIBRARY_SUFFIX}")
set(SAKER_RUST_LIBRARY "${PROJECT_BINARY_DIR}/rust/${_rust_library}")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/rust")
add_custom_command(
  OUTPUT "${SAKER_RUST_LIBRARY}"
  COMMAND
    "${CMAKE_COMMAND}" -E env ${_rust_environment} "${SAKER_CARGO}" build --quiet ${_rust_arguments}
    --locked --lib
  COMMAND "${CMAKE_COMMAND}" -E copy "${_rust_output}/${_rust_library}" "${SAKER_RUST_LIBRARY}"
  DEPENDS "${_rust}/Cargo.toml" "${_rust}/Cargo.lock" "${_rust}/.cargo/config.toml" ${_rust_sources}
  WORKING_DIRECTORY "${_rust}"
  COMMENT "Building the Rust text library (cargo)"
  VERBATIM
)
add_custom_target(saker_rs_build DEPENDS "${SAKER_RUST_LIBRARY}")

add_library(saker_rs STATIC IMPORTED GLOBAL)
set_target_properties(
  saker_rs
  PROPERTIES
    IMPORTED_LOCATION "${SAKER_RUST_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${_rust}/include"
    INTERFACE_LINK_LIBRARIES "pthread;${CMAKE_DL_LIBS};m"
)
# Programs are linked after the library, which Ninja knows by its file, so that all else compiles meanwhile.
if(NOT CMAKE_GENERATOR MATCHES "Ninja")
  add_dependencies(saker_rs saker_rs_build)
endif()
