# SPDX-License-Identifier: Apache-2.0
# Use ccache when it is there. Checkouts, wheels and programs that embed Saker share its objects, see compile.sh; -Werror,
# which presets alone ask for, makes no other object. What a build without it compiled with a warning, a preset's build
# shows again but does not refuse.
find_program(SAKER_CCACHE ccache)
if(SAKER_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Reports of coverage and clang's precompiled headers hold the paths of one checkout.
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND SAKER_PRECOMPILED_HEADERS)
    set(keeps_paths ON)
  else()
    set(keeps_paths "${SAKER_COVERAGE}")
  endif()
  if(CMAKE_GENERATOR STREQUAL "Ninja" AND NOT keeps_paths)
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}" "${CMAKE_BINARY_DIR}/.saker" SYMBOLIC)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_CURRENT_LIST_DIR}/compile.sh" "${PROJECT_SOURCE_DIR}" "${SAKER_CCACHE}")
endif()
