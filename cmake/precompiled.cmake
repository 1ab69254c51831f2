# SPDX-License-Identifier: Apache-2.0
# Two ways to compile what most sources include less often: once for all, or once for each folder. Presets that build
# everything take them; a package that embeds us does not. Whether each source includes what it uses, clang-tidy's preset
# sees, which goes without.
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

option(SAKER_UNITY_BUILD "Compile each folder's sources together: built once sooner, after an edit later" OFF)

# saker_compile_sooner(<target> [<header>...]): the sources of each folder together, or with those headers, and more,
# compiled before. In the directory that adds the target.
function(saker_compile_sooner target)
  if(SAKER_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # Takes the sources for headers.
    endif()
    cmake_language(EVAL CODE "cmake_language(DEFER CALL saker_group_by_folder [[${target}]])")  # Once it has its sources.
  else()
    saker_precompile(${target} ${ARGN})
  endif()
endfunction()

# saker_compile_apart(<target> <path>...): sources, or those of folders, that stay apart all the same.
function(saker_compile_apart target)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  set_property(TARGET ${target} APPEND PROPERTY SAKER_APART ${ARGN})
endfunction()

function(saker_group_by_folder target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(apart ${target} SAKER_APART)
  get_target_property(here ${target} SOURCE_DIR)
  list(FILTER sources EXCLUDE REGEX "[$]<")  # Objects of other targets.
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${here}")
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${source}" is_generated)
    cmake_path(GET source PARENT_PATH folder)
    if(NOT is_generated AND NOT source IN_LIST apart AND NOT folder IN_LIST apart)
      cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
      string(REPLACE "/" "_" folder "${folder}")
      set_property(SOURCE "${source}" TARGET_DIRECTORY ${target} PROPERTY UNITY_GROUP "${folder}")
    endif()
  endforeach()
endfunction()

# saker_precompile(<target> [<header>...]) gives a target those headers, and more.
function(saker_precompile target)
  if(SAKER_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} PRIVATE ${precompiled_headers} ${ARGN})
    saker_keep_precompiled(${target})
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
