# SPDX-License-Identifier: Apache-2.0
# What most sources include, compiled once: most of the time that a source takes. Off by default, so that a
# source that lacks an include does not build.
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
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")  # For ccache.
    endif()
  endif()
endfunction()
