// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/no_memory.h"

#include "saker/base/memory.h"
#include "saker/cli/io/output.h"

#include <unistd.h>

#include <exception>
#include <new>
#include <string_view>

namespace saker::cli {
namespace {

std::terminate_handler& usual() {
  static std::terminate_handler handler = nullptr;
  return handler;
}

thread_local bool had_no_memory = false;

[[noreturn]] void no_memory() {
  had_no_memory = true;
  throw std::bad_alloc();
}

[[noreturn]] void end(std::string_view reason) {
  print_error("error: ");
  print_error(reason);
  print_error("\n");
  ::_exit(1);
}

// Needs no memory itself.
void tell_out_of_memory() {
  try {
    if (const std::exception_ptr error = std::current_exception()) {
      std::rethrow_exception(error);
    }
    // An exception met a noexcept function, such as those of std::filesystem; its type is unknown.
    if (had_no_memory && std::uncaught_exceptions() > 0) {
      end(*out_of_memory_reason(std::bad_alloc()));
    }
  } catch (const std::exception& error) {
    if (const auto what = out_of_memory_reason(error)) {
      end(*what);
    }
  } catch (...) {
    usual()();
  }
  usual()();
}

}  // namespace

void explain_out_of_memory_anywhere() {
  std::set_new_handler(no_memory);
  usual() = std::set_terminate(tell_out_of_memory);
}

}  // namespace saker::cli
