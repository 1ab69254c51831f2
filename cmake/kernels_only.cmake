# SPDX-License-Identifier: Apache-2.0
# The kernels' bodies and their tests alone: no MLX, no Rust, no library but fmt's headers and
# GoogleTest's sources, so that they can be built for machines that are only emulated here.
find_package(Threads REQUIRED)
set(SAKER_GTEST_DIR "/usr/src/googletest" CACHE PATH "GoogleTest's sources, as libgtest-dev has them")

add_library(fmt_headers INTERFACE)
target_compile_definitions(fmt_headers INTERFACE FMT_HEADER_ONLY)
add_library(fmt::fmt ALIAS fmt_headers)

include_directories("${PROJECT_SOURCE_DIR}")
add_library(libsaker STATIC)
set_target_properties(libsaker PROPERTIES OUTPUT_NAME saker_kernels)
target_include_directories(libsaker PUBLIC "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(libsaker PUBLIC fmt::fmt Threads::Threads)
include(isa)
foreach(source characters/printable characters/utf8_character control_group error instruction_set memory tensor)
  target_sources(libsaker PRIVATE "${PROJECT_SOURCE_DIR}/saker/base/${source}.cpp")
endforeach()
add_subdirectory(saker/kernels)

enable_testing()
add_subdirectory("${SAKER_GTEST_DIR}" googletest EXCLUDE_FROM_ALL)
foreach(target gtest gtest_main gmock)
  target_compile_options(${target} PRIVATE -w)  # Not our code.
endforeach()
add_subdirectory(tests)
