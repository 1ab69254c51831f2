# SPDX-License-Identifier: Apache-2.0
# `cmake --install`, component `program`: the program, MLX beside it, the bundled model, manual pages and completions.
include(GNUInstallDirs)
install(TARGETS saker RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
get_filename_component(_mlx_parent "${SAKER_MLX_DIR}" DIRECTORY)
file(GLOB _mlx_libs "${_mlx_parent}/mlx_*.libs")
install(DIRECTORY "${SAKER_MLX_DIR}/lib" DESTINATION lib/saker/mlx COMPONENT program PATTERN cmake EXCLUDE)
if(_mlx_libs)
  install(DIRECTORY ${_mlx_libs} DESTINATION lib/saker COMPONENT program)
endif()
install(DIRECTORY models/demo DESTINATION "${CMAKE_INSTALL_DATADIR}/saker/models" COMPONENT program OPTIONAL)

# What the program writes itself. Nothing where the installed one does not run, as after compiling for another machine.
install(
  CODE
    [[
  set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
  function(saker_write folder file)
    execute_process(
      COMMAND "${root}/bin/saker" ${ARGN}
      OUTPUT_VARIABLE text
      RESULT_VARIABLE failed
      ERROR_QUIET
    )
    if(NOT failed)
      message(STATUS "Installing: ${root}/share/${folder}/${file}")
      file(WRITE "${root}/share/${folder}/${file}" "${text}")
    endif()
  endfunction()
  message(STATUS "Installing: ${root}/share/man/man1")
  execute_process(COMMAND "${root}/bin/saker" man --directory "${root}/share/man/man1" ERROR_QUIET)
  saker_write(bash-completion/completions saker completions bash)
  saker_write(zsh/site-functions _saker completions zsh)
  saker_write(fish/vendor_completions.d saker.fish completions fish)
]]
  COMPONENT program
)
