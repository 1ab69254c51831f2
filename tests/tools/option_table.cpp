// SPDX-License-Identifier: Apache-2.0
// Prints the options of a request as JSON, for tools/make_option_pages.py.
#include "saker/base/json/json_numbers.h"
#include "saker/engine/options/request_option.h"

#include <iostream>

int main() {
  std::cout << saker::write_json(saker::engine::option_table(), 1) << '\n';
  return std::cout.flush() ? 0 : 1;
}
