# SPDX-License-Identifier: Apache-2.0
# saker_isa_sources(<isa> <source>...) compiles sources for one instruction set and puts the
# objects into libsaker. One source may be given for several sets: SAKER_ISA names the set, to be
# used as a namespace, so that no inline function of ours is shared between sets. Which set runs
# is chosen at run time; what is compiled here must not run before that.
set(SAKER_ISA_FLAGS_portable "")
set(SAKER_ISA_FLAGS_neon -DSAKER_NEON)
set(SAKER_ISA_FLAGS_neon_bf16 -DSAKER_NEON -march=armv8.2-a+dotprod+bf16+i8mm)
set(SAKER_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(SAKER_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx2 -mfma -mf16c)
set(SAKER_ISA_FLAGS_avx512_vnni ${SAKER_ISA_FLAGS_avx512} -mavx512vnni)
set(SAKER_ISA_FLAGS_avx512_bf16 ${SAKER_ISA_FLAGS_avx512_vnni} -mavx512bf16 -mavx512vbmi)
set(SAKER_ISA_FLAGS_amx ${SAKER_ISA_FLAGS_avx512_bf16} -mamx-tile -mamx-bf16 -mamx-int8)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # False alarm of g++ 12 inside its own avx512fintrin.h.
  list(APPEND SAKER_ISA_FLAGS_avx512 -Wno-uninitialized)
  list(APPEND SAKER_ISA_FLAGS_avx512_vnni -Wno-uninitialized)
  list(APPEND SAKER_ISA_FLAGS_avx512_bf16 -Wno-uninitialized)
  list(APPEND SAKER_ISA_FLAGS_amx -Wno-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A vector of sixteen lanes is two registers there. Copied through memory by halves of a register,
  # as g++ does by default, it can't be forwarded from the stores: answers at 4 bits took twice as
  # long.
  list(APPEND SAKER_ISA_FLAGS_avx2 -mmove-max=256 -mstore-max=256)
endif()
set(isa_sets_x86 avx2 avx512 avx512_vnni avx512_bf16 amx)
set(isa_sets_arm neon neon_bf16)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(isa_sets ${isa_sets_x86})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(isa_sets ${isa_sets_arm})
endif()
set(
  SAKER_ISA_SETS "${isa_sets}"
  CACHE STRING "Instruction sets to compile for, besides portable; fewer sets build faster"
)

function(saker_isa_sources isa)
  if(NOT DEFINED SAKER_ISA_FLAGS_${isa})
    message(FATAL_ERROR "saker_isa_sources: '${isa}' is no known instruction set")
  endif()
  if(NOT isa STREQUAL "portable" AND NOT isa IN_LIST isa_sets)
    return()  # Of another processor.
  endif()
  if(NOT isa STREQUAL "portable" AND NOT isa IN_LIST SAKER_ISA_SETS)
    return()
  endif()
  set(target saker_isa_${isa})
  if(NOT TARGET ${target})
    add_library(${target} OBJECT)
    target_compile_options(${target} PRIVATE ${SAKER_ISA_FLAGS_${isa}})
    target_compile_definitions(${target} PRIVATE SAKER_ISA=${isa})
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${target} PRIVATE fmt::fmt)
    target_sources(libsaker PRIVATE $<TARGET_OBJECTS:${target}>)
    string(TOUPPER "${isa}" name)
    target_compile_definitions(libsaker PRIVATE SAKER_HAS_${name}=1)
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    target_sources(${target} PRIVATE "${source}")
  endforeach()
endfunction()
