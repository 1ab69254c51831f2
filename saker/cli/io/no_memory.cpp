// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/no_memory.h"

#include "saker/base/memory.h"
#include "saker/cli/io/output.h"

#include <unistd.h>

#include <exception>

namespace saker::cli {
namespace {

std::terminate_handler& usual() {
  static std::terminate_handler handler = nullptr;
  return handler;
}

// Needs no memory itself.
void tell_out_of_memory() {
  try {
    if (const std::exception_ptr error = std::current_exception()) {
      std::rethrow_exception(error);
    }
  } catch (const std::exception& error) {
    if (const auto what = out_of_memory_reason(error)) {
      print_error("error: ");
      print_error(*what);
      print_error("\n");
      ::_exit(1);
    }
  } catch (...) {
    usual()();
  }
  usual()();
}

}  // namespace

void explain_out_of_memory_anywhere() {
  usual() = std::set_terminate(tell_out_of_memory);
}

}  // namespace saker::cli
