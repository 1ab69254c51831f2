# SPDX-License-Identifier: Apache-2.0
# Target `mlx`: the pinned MLX from its backend wheel, headers as SYSTEM.
#
# The wheels need no Python to run: they hold mlx/include and mlx/lib. pip fetches one by name,
# version and hash, CMake unzips it into SAKER_DEPS_DIR. MLX_ROOT names an existing folder with
# include/ and lib/ instead. The wheel's own MLXConfig.cmake is not used: it asks for a CUDA
# toolkit or for one exact Xcode, which a program that only links MLX does not need.

set(SAKER_MLX_VERSION 0.32.4)
if(APPLE)
  set(_default_backend metal)
else()
  set(_default_backend cpu)
endif()
set(SAKER_MLX_BACKEND ${_default_backend} CACHE STRING "MLX backend: cpu, metal or cuda13")
set_property(CACHE SAKER_MLX_BACKEND PROPERTY STRINGS cpu metal cuda13)
set(MLX_ROOT "" CACHE PATH "An MLX ${SAKER_MLX_VERSION} with include/ and lib/, instead of the wheel")

# Fails unless the headers are those of the pinned version: MLX breaks source in patch releases.
function(saker_check_mlx_version include_dir)
  set(found "")
  file(STRINGS "${include_dir}/mlx/version.h" lines REGEX "define MLX_VERSION_(MAJOR|MINOR|PATCH) ")
  foreach(part MAJOR MINOR PATCH)
    string(REGEX MATCH "MLX_VERSION_${part} ([0-9]+)" _ "${lines}")
    list(APPEND found "${CMAKE_MATCH_1}")
  endforeach()
  list(JOIN found "." found)
  if(NOT found STREQUAL SAKER_MLX_VERSION)
    message(FATAL_ERROR "MLX in ${include_dir} is ${found}, expected ${SAKER_MLX_VERSION}")
  endif()
endfunction()

if(MLX_ROOT)
  set(SAKER_MLX_DIR "${MLX_ROOT}")
else()
  set(_requirements "${PROJECT_SOURCE_DIR}/cmake/mlx-${SAKER_MLX_BACKEND}.txt")
  if(NOT EXISTS "${_requirements}")
    message(FATAL_ERROR "SAKER_MLX_BACKEND is '${SAKER_MLX_BACKEND}'; it can be cpu, metal or cuda13")
  endif()
  saker_fetch_wheels(_wheels "mlx-${SAKER_MLX_BACKEND}-${SAKER_MLX_VERSION}" "${_requirements}")
  set(SAKER_MLX_DIR "${_wheels}/mlx")
endif()
foreach(file "include/mlx/version.h" "lib/${CMAKE_SHARED_LIBRARY_PREFIX}mlx${CMAKE_SHARED_LIBRARY_SUFFIX}")
  if(NOT EXISTS "${SAKER_MLX_DIR}/${file}")
    message(FATAL_ERROR "MLX: ${SAKER_MLX_DIR}/${file} is missing")
  endif()
endforeach()
saker_check_mlx_version("${SAKER_MLX_DIR}/include")

add_library(mlx SHARED IMPORTED GLOBAL)
set_target_properties(
  mlx
  PROPERTIES
    IMPORTED_LOCATION
      "${SAKER_MLX_DIR}/lib/${CMAKE_SHARED_LIBRARY_PREFIX}mlx${CMAKE_SHARED_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${SAKER_MLX_DIR}/include"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${SAKER_MLX_DIR}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20
)
if(APPLE)
  set(CMAKE_INSTALL_RPATH "@loader_path/../lib/saker/mlx/lib")
else()
  # The wheel finds its own BLAS and CUDA libraries by its rpath; ld need not.
  target_link_options(mlx INTERFACE -Wl,--allow-shlib-undefined)
  set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/saker/mlx/lib")
endif()
message(STATUS "MLX ${SAKER_MLX_VERSION} (${SAKER_MLX_BACKEND}): ${SAKER_MLX_DIR}")
