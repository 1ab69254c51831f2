# SPDX-License-Identifier: Apache-2.0
# SAKER_COVERAGE: folders of saker/ whose lines are counted (gcov). Their sources are compiled without optimization,
# the others as always, so that tests take little longer and a compiler cache has most of the build.
set(SAKER_COVERAGE "" CACHE STRING "Folders of saker/ whose executed lines are counted: load;hub;text (g++ only)")

# saker_count_lines(<target>...), once their sources are known.
function(saker_count_lines)
  if(NOT SAKER_COVERAGE)
    return()
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "SAKER_COVERAGE needs g++: cmake --preset coverage")
  endif()
  string(REPLACE ";" "|" folders "${SAKER_COVERAGE}")
  foreach(target IN LISTS ARGN)
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    list(TRANSFORM sources REPLACE "^([^/].*)$" "${folder}/\\1")
    list(FILTER sources INCLUDE REGEX "^${PROJECT_SOURCE_DIR}/saker/(${folders})/")
    set_property(
      SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS -O0 --coverage
    )
    target_link_options(${target} PUBLIC --coverage)
  endforeach()
endfunction()
