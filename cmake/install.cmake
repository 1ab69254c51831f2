# SPDX-License-Identifier: Apache-2.0
# `cmake --install --component program`: the program, MLX beside it, the bundled model, the manual page and completions.
# Other components are in cmake/package.cmake.
include(GNUInstallDirs)

# saker_install_mlx(<component>): MLX, where the programs and libraries of that component look for it.
function(saker_install_mlx component)
  get_filename_component(parent "${SAKER_MLX_DIR}" DIRECTORY)
  file(GLOB libs "${parent}/mlx_*.libs")
  install(
    DIRECTORY "${SAKER_MLX_DIR}/lib" DESTINATION lib/saker/mlx COMPONENT ${component} PATTERN cmake EXCLUDE
  )
  if(libs)
    install(DIRECTORY ${libs} DESTINATION lib/saker COMPONENT ${component})
  endif()
endfunction()

# saker_install_demo_model(<component>)
function(saker_install_demo_model component)
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/models/demo"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/saker/models"
    COMPONENT ${component}
    OPTIONAL
  )
endfunction()

if(NOT TARGET saker)
  return()
endif()
install(TARGETS saker RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT program)
saker_install_mlx(program)
saker_install_demo_model(program)

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
  saker_write(man/man1 saker.1 man)
  saker_write(bash-completion/completions saker completion bash)
  saker_write(zsh/site-functions _saker completion zsh)
  saker_write(fish/vendor_completions.d saker.fish completion fish)
]]
  COMPONENT program
)
