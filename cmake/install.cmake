# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the program, MLX beside it, and the bundled model.
include(GNUInstallDirs)
install(TARGETS saker RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
get_filename_component(_mlx_parent "${SAKER_MLX_DIR}" DIRECTORY)
file(GLOB _mlx_libs "${_mlx_parent}/mlx_*.libs")
install(DIRECTORY "${SAKER_MLX_DIR}/lib" DESTINATION lib/saker/mlx PATTERN cmake EXCLUDE)
if(_mlx_libs)
  install(DIRECTORY ${_mlx_libs} DESTINATION lib/saker)
endif()
install(DIRECTORY models/demo DESTINATION "${CMAKE_INSTALL_DATADIR}/saker/models" OPTIONAL)
