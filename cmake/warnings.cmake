# SPDX-License-Identifier: Apache-2.0
# Flags of every target of ours. Floating-point contraction is off, since a compiler that fuses
# a * b + c in one kernel and not in another would change the bits of a row; where a fused
# multiply-add is wanted, the code says so.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off)
if(SAKER_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # False alarms of g++ 12 inside the standard library, at -O2 and above.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Less often does g++ look for memory to use again: a seventh less time, a fifth more memory.
  add_compile_options(--param=ggc-min-heapsize=393216)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # std::bind of libstdc++ 12, which MLX's headers use, names the deprecated std::result_of.
  add_compile_options(-Wno-deprecated-declarations)
endif()
