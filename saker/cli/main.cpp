// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/app.h"

int main(int argc, char** argv) {
  return saker::cli::run(argc, argv);
}
