# SPDX-License-Identifier: Apache-2.0
# SAKER_SANITIZE=address,undefined or thread. MLX stays as it is; cmake/rust.cmake says when the Rust library does not.
string(REPLACE "," ";" SAKER_SANITIZERS "${SAKER_SANITIZE}")
if(SAKER_SANITIZE)
  add_compile_options(
    -fsanitize=${SAKER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
  )
  add_link_options(-fsanitize=${SAKER_SANITIZE})
endif()
