# SPDX-License-Identifier: Apache-2.0
# saker_fetch_wheels(<result> <name> <requirements>) unzips the wheels that a requirements file pins
# by version and hash into SAKER_DEPS_DIR, once, and returns the folder.
function(saker_fetch_wheels result name requirements)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${requirements}")
  file(SHA256 "${requirements}" key)
  string(SUBSTRING "${key}" 0 12 key)
  set(folder "${SAKER_DEPS_DIR}/${name}-${key}")
  set(${result} "${folder}" PARENT_SCOPE)
  file(MAKE_DIRECTORY "${SAKER_DEPS_DIR}")
  file(LOCK "${SAKER_DEPS_DIR}/wheels.lock" GUARD FUNCTION TIMEOUT 900)
  if(EXISTS "${folder}/complete")
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  message(STATUS "Fetching ${name}")
  file(REMOVE_RECURSE "${folder}")
  execute_process(
    COMMAND
      "${Python3_EXECUTABLE}" -m pip download --quiet --disable-pip-version-check --no-deps
      --only-binary=:all: --require-hashes -r "${requirements}" -d "${folder}/wheels"
    RESULT_VARIABLE failed
    ERROR_VARIABLE reason
    INPUT_FILE /dev/null
  )
  if(failed)
    message(FATAL_ERROR "pip could not fetch what ${requirements} lists (is python3-pip there?):\n${reason}")
  endif()
  file(GLOB wheels "${folder}/wheels/*.whl")
  foreach(wheel IN LISTS wheels)
    file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${folder}")
  endforeach()
  file(REMOVE_RECURSE "${folder}/wheels")
  file(TOUCH "${folder}/complete")
endfunction()
