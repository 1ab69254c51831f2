// SPDX-License-Identifier: Apache-2.0
#include "saker/base/memory.h"
#include "saker/cli/app.h"

int main(int argc, char** argv) {
  constexpr int kKeptBytes = 512 << 20;  // The logits of a pass of 512 rows are 300 MB.
  saker::keep_freed_memory(kKeptBytes);
  return saker::cli::run(argc, argv);
}
