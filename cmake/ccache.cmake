# SPDX-License-Identifier: Apache-2.0
# Use ccache when it is there. Checkouts, wheels and programs that embed Saker share its objects: paths are kept relative,
# and -Werror, which presets alone ask for, makes no other object. What a build without it compiled with a warning, a
# preset's build shows again but does not refuse.
find_program(SAKER_CCACHE ccache)
if(SAKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(
    CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
    CCACHE_IGNOREOPTIONS=-Werror CCACHE_SLOPPINESS=pch_defines,time_macros "${SAKER_CCACHE}"
  )
endif()
