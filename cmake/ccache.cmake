# SPDX-License-Identifier: Apache-2.0
# Use ccache when it is there; paths are kept relative so that checkouts share a cache.
find_program(SAKER_CCACHE ccache)
if(SAKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(
    CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros "${SAKER_CCACHE}"
  )
endif()
