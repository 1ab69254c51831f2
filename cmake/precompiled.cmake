# SPDX-License-Identifier: Apache-2.0
# What most sources include, compiled once: a quarter of a build's time. Presets that build everything take it; a package
# that embeds us does not. Whether each source includes what it uses, clang-tidy's preset sees, which goes without.
option(SAKER_PRECOMPILED_HEADERS "Compile common headers once" OFF)
set(
  precompiled_headers
  <algorithm>
  <filesystem>
  <functional>
  <map>
  <memory>
  <optional>
  <span>
  <string>
  <vector>
  <fmt/ranges.h>
  <mlx/mlx.h>
  <nlohmann/json.hpp>
)

# saker_precompile(<target> [<header>...]) gives a target those headers, and more.
function(saker_precompile target)
  if(SAKER_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE ${precompiled_headers} ${ARGN})
    saker_keep_precompiled(${target})
  endif()
endfunction()

# For targets that a release compiles at -O3: g++ 12 gives false alarms in headers that were compiled before.
function(saker_precompile_optimized target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")
    saker_precompile(${target})
  endif()
endfunction()

# saker_precompile_as(<target> <other>): the headers of another target, which is compiled with the same options.
function(saker_precompile_as target other)
  if(SAKER_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${other})
    saker_keep_precompiled(${target})
  endif()
endfunction()

# Warnings that g++ 12 finds while it optimizes: inside headers that were compiled before they are false alarms of the
# standard library, so that they are no errors. All other warnings are; clang compiles the same sources.
set(
  precompiled_false_alarms
  array-bounds
  dangling-pointer
  format-overflow
  format-truncation
  free-nonheap-object
  mismatched-new-delete
  nonnull
  stringop-overflow
  stringop-overread
  stringop-truncation
  uninitialized
  use-after-free
)
list(TRANSFORM precompiled_false_alarms PREPEND -Wno-error=)

# What ccache needs.
function(saker_keep_precompiled target)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  else()
    target_compile_options(${target} PRIVATE -fpch-preprocess ${precompiled_false_alarms})
  endif()
endfunction()
