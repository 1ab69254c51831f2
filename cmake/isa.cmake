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
# Those that choose a set at run time. All other objects stay the same whatever sets there are.
set(isa_choosers base/instruction_set.cpp kernels/cpu/dispatch/dispatch.cpp kernels/limits/machine_limits.cpp)
list(TRANSFORM isa_choosers PREPEND "${PROJECT_SOURCE_DIR}/saker/")
set(isa_sets_x86 avx2 avx512 avx512_vnni avx512_bf16 amx)
set(isa_sets_arm neon neon_bf16)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(isa_sets ${isa_sets_x86})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(isa_sets ${isa_sets_arm})
endif()
set(
  SAKER_ISA_SETS "${isa_sets}"
  CACHE STRING "Instruction sets to compile for, besides portable; fewer build faster. native: those of this machine"
)

# Sets `result` to the best set that this machine's processor has, as the compiler finds it, and to the set whose plain
# loops it runs.
function(saker_native_isa_sets result)
  set(best "")
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E -x c++ /dev/null
    OUTPUT_VARIABLE macros
    COMMAND_ERROR_IS_FATAL ANY
  )
  set(macros_avx2 __AVX2__ __FMA__ __F16C__)
  set(macros_avx512 ${macros_avx2} __AVX512F__ __AVX512BW__ __AVX512VL__ __AVX512DQ__)
  set(macros_avx512_vnni ${macros_avx512} __AVX512VNNI__)
  set(macros_avx512_bf16 ${macros_avx512_vnni} __AVX512BF16__ __AVX512VBMI__)
  set(macros_amx ${macros_avx512_bf16} __AMX_TILE__ __AMX_BF16__ __AMX_INT8__)
  set(macros_neon __ARM_NEON)
  set(macros_neon_bf16 __ARM_NEON __ARM_FEATURE_BF16 __ARM_FEATURE_DOTPROD __ARM_FEATURE_MATMUL_INT8)
  foreach(isa IN LISTS isa_sets)  # From the least to the best.
    set(has_all TRUE)
    foreach(macro IN LISTS macros_${isa})
      if(NOT macros MATCHES "#define ${macro} ")
        set(has_all FALSE)
      endif()
    endforeach()
    if(has_all)
      set(best ${isa})
    endif()
  endforeach()
  if(best MATCHES "^(avx512_|amx)")
    list(PREPEND best avx512)
  endif()
  message(STATUS "Instruction sets: portable;${best}")
  set(${result} "${best}" PARENT_SCOPE)
endfunction()

if(SAKER_ISA_SETS STREQUAL "native")
  saker_native_isa_sets(SAKER_ISA_SETS)
endif()
foreach(isa IN LISTS SAKER_ISA_SETS)
  if(NOT isa IN_LIST isa_sets)
    message(FATAL_ERROR "SAKER_ISA_SETS: got '${isa}', expected native or some of ${isa_sets}")
  endif()
endforeach()

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
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(${target} PRIVATE fmt::fmt)
    target_sources(libsaker PRIVATE $<TARGET_OBJECTS:${target}>)
    string(TOUPPER "${isa}" name)
    set_property(
      SOURCE ${isa_choosers}
      TARGET_DIRECTORY libsaker
      APPEND PROPERTY COMPILE_DEFINITIONS SAKER_HAS_${name}=1
    )
  endif()
  foreach(source IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
    target_sources(${target} PRIVATE "${source}")
  endforeach()
endfunction()

# saker_isa_loops(<function> TYPE <type> NAMESPACE <namespace> HEADER <header> BODIES <source> SETS <isa>...): compiles
# <source>, which defines `const <type> <function>_bodies`, for each set, and defines the function that <header>
# declares, `const <type>& <function>()`: the bodies of the set in use.
function(saker_isa_loops function)
  cmake_parse_arguments(PARSE_ARGV 1 loops "" "TYPE;NAMESPACE;HEADER;BODIES" "SETS")
  set(declarations "")
  set(entries "")
  foreach(isa IN LISTS loops_SETS)
    saker_isa_sources(${isa} ${loops_BODIES})
    if(isa STREQUAL "portable" OR (isa IN_LIST isa_sets AND isa IN_LIST SAKER_ISA_SETS))
      string(REGEX REPLACE "^(.)(.*)$" "\\1;\\2" letters ${isa})
      list(POP_FRONT letters initial)
      string(TOUPPER "${initial}" initial)
      string(APPEND declarations "namespace ${isa} { extern const ${loops_TYPE} ${function}_bodies; }\n")
      string(APPEND entries "      {InstructionSet::k${initial}${letters}, &${isa}::${function}_bodies},\n")
    endif()
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Written by saker_isa_loops of cmake/isa.cmake.
#include \"${loops_HEADER}\"

#include \"saker/base/instruction_set.h\"

namespace ${loops_NAMESPACE} {

${declarations}
const ${loops_TYPE}& ${function}() {
  static const BodiesBySet<${loops_TYPE}> by_set{
${entries}  };
  return by_set.in_use();
}

}  // namespace ${loops_NAMESPACE}
" @ONLY)
  target_sources(libsaker PRIVATE "${source}")
endfunction()
