// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/asking.h"

#include "saker/cli/io/output.h"
#include "saker/hub/environment.h"
#include "saker/hub/http/web_address.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <string>

namespace saker::cli {

std::function<void(const std::string& failure)> say_asking(const hub::ModelName& name) {
  if (::isatty(STDERR_FILENO) != 1) {
    return {};
  }
  print_error(fmt::format("asking {} about {} ...\n", hub_host(), hub::to_string(name)));
  return
      [](const std::string& failure) { print_error(fmt::format("{}; trying again\n", failure)); };
}

std::string hub_host() {
  const std::string shown = hub::without_user(hub::endpoint());
  const std::size_t slashes = shown.find("://");
  return slashes == std::string::npos ? shown : shown.substr(slashes + 3);
}

}  // namespace saker::cli
