# SPDX-License-Identifier: Apache-2.0
# `cmake --install` for programs that build against Saker: find_package(saker COMPONENTS C CXX), and pkg-config saker for
# the C interface. All paths begin at the file that names them, so that the folder may be moved (docs/embed.md).
# Components: `c` is libsaker_c with saker.h, `cxx` the C++ libraries with the public headers.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
get_filename_component(mlx_parent "${SAKER_MLX_DIR}" DIRECTORY)
file(GLOB mlx_libs "${mlx_parent}/mlx_*.libs")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/saker")
file(RELATIVE_PATH lib_to_prefix "/p/${CMAKE_INSTALL_LIBDIR}" "/p")
file(RELATIVE_PATH pkgconfig_to_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
if(APPLE)
  set(beside_library "@loader_path")
else()
  set(beside_library "$ORIGIN")
endif()

set_target_properties(
  libsaker_c
  PROPERTIES EXPORT_NAME c INSTALL_RPATH "${beside_library};${beside_library}/${lib_to_prefix}lib/saker/mlx/lib"
)
install(
  TARGETS libsaker_c EXPORT saker_c
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT c NAMELINK_COMPONENT c
)
install(FILES "${PROJECT_SOURCE_DIR}/include/saker.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT c)
install(EXPORT saker_c FILE saker_c.cmake NAMESPACE saker:: DESTINATION "${package_dir}" COMPONENT c)
configure_file(cmake/saker.pc.in saker.pc @ONLY)
install(
  FILES "${PROJECT_BINARY_DIR}/saker.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT c
)

set(libraries libsaker libsaker_caches)
set_target_properties(libsaker PROPERTIES EXPORT_NAME cxx)
set_target_properties(libsaker_caches PROPERTIES EXPORT_NAME caches)
if(SAKER_BUILD_HUB)
  list(APPEND libraries libsaker_hub)
  set_target_properties(libsaker_hub PROPERTIES EXPORT_NAME hub)
endif()
install(
  TARGETS ${libraries} EXPORT saker_cxx
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cxx
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cxx
)
install(FILES "${SAKER_RUST_LIBRARY}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT cxx)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/saker" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT cxx
)
install(DIRECTORY "${SAKER_MLX_DIR}/include" DESTINATION lib/saker/mlx COMPONENT cxx)
install(EXPORT saker_cxx FILE saker_cxx.cmake NAMESPACE saker:: DESTINATION "${package_dir}" COMPONENT cxx)

configure_package_config_file(
  cmake/saker-config.cmake.in "${PROJECT_BINARY_DIR}/saker-config.cmake"
  INSTALL_DESTINATION "${package_dir}"
)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/saker-config-version.cmake" COMPATIBILITY SameMinorVersion
)
# Each component has what both need.
foreach(component c cxx)
  install(
    FILES "${PROJECT_BINARY_DIR}/saker-config.cmake" "${PROJECT_BINARY_DIR}/saker-config-version.cmake"
    DESTINATION "${package_dir}"
    COMPONENT ${component}
  )
  install(
    DIRECTORY "${SAKER_MLX_DIR}/lib" DESTINATION lib/saker/mlx COMPONENT ${component} PATTERN cmake EXCLUDE
  )
  if(mlx_libs)
    install(DIRECTORY ${mlx_libs} DESTINATION lib/saker COMPONENT ${component})
  endif()
  install(
    DIRECTORY models/demo
    DESTINATION "${CMAKE_INSTALL_DATADIR}/saker/models"
    COMPONENT ${component}
    OPTIONAL
  )
endforeach()
