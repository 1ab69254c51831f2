// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/consent.h"

#include "saker/base/error.h"
#include "saker/cli/io/output.h"

#include <poll.h>
#include <unistd.h>

#include <iostream>
#include <stop_token>
#include <string>

namespace saker::cli {

bool can_ask() {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

bool ask_yes(const std::string& question, const std::stop_token& stop) {
  constexpr int kWaitMilliseconds = 50;
  print_error(question);
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (::poll(&input, 1, kWaitMilliseconds) == 0) {
    if (stop.stop_requested()) {
      print_error("\n");
      throw Error(ErrorCode::kCancelled, "interrupted");
    }
  }
  std::string answer;
  if (!std::getline(std::cin, answer)) {
    print_error("\n");
    return false;
  }
  return answer.empty() || answer == "y" || answer == "Y" || answer == "yes" || answer == "Yes";
}

}  // namespace saker::cli
