# SPDX-License-Identifier: Apache-2.0
# saker_harden(<target>...): a fault in our own code ends the program instead of doing harm. Copies into buffers and
# subscripts of the standard library are checked, return addresses guarded, tables of functions read-only before the
# program begins. tools/check_hardening.sh looks at the result. The kernels' bodies (cmake/isa.cmake) take none of it:
# their callers check sizes, and they are where the time goes.
option(SAKER_HARDENING "Guard our own code against its faults" ON)
include(CheckPIESupported)
check_pie_supported()

set(hardening_flags -fstack-protector-strong)
if(CMAKE_BUILD_TYPE MATCHES "^Rel" AND NOT SAKER_SANITIZE)
  # Needs an optimizing compiler; sanitizers check more.
  list(APPEND hardening_flags -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
endif()

function(saker_harden)
  if(NOT SAKER_HARDENING)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${hardening_flags})
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
    if(NOT APPLE)
      target_link_options(${target} PRIVATE LINKER:-z,relro LINKER:-z,now)
    endif()
  endforeach()
endfunction()
