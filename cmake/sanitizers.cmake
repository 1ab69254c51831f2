# SPDX-License-Identifier: Apache-2.0
# SAKER_SANITIZE=address,undefined or thread. MLX and the Rust library stay as they are.
if(SAKER_SANITIZE)
  add_compile_options(
    -fsanitize=${SAKER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
  )
  add_link_options(-fsanitize=${SAKER_SANITIZE})
endif()
