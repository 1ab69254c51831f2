// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/app.h"

#include <CLI/CLI.hpp>

namespace saker::cli {

int run(int argc, char** argv) {
  CLI::App app{"Saker runs large language models"};
  app.set_version_flag("--version", SAKER_VERSION);
  CLI11_PARSE(app, argc, argv);
  return 0;
}

}  // namespace saker::cli
