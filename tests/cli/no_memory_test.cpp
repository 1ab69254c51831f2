// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/no_memory.h"

#include "saker/cli/io/output.h"

#include "tests/support/sanitizers.h"
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>

namespace saker::cli {
namespace {

template <typename Exception>
void throw_on_a_thread(const Exception& error) {
  explain_out_of_memory_anywhere();
  std::thread([&] { throw error; }).join();
}

TEST(NoMemory, IsOneLineWhereNothingCatches) {
  EXPECT_EXIT(
      throw_on_a_thread(std::bad_alloc()),
      ::testing::ExitedWithCode(1),
      "^error: there is not enough memory\n$"
  );
}

TEST(NoMemory, OtherErrorsStayWhatTheyAre) {
  EXPECT_EXIT(
      throw_on_a_thread(std::runtime_error("our bug")),
      ::testing::KilledBySignal(SIGABRT),
      "our bug"
  );
}

// Leaves nothing to allocate.
void take_all_memory() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_AS, &none);
  for (const std::size_t size : {std::size_t{1} << 12, std::size_t{64}, std::size_t{1}}) {
    while (std::malloc(size) != nullptr) {  // NOLINT: kept on purpose.
    }
  }
}

TEST(NoMemory, LinesAreStillPrinted) {
  if (saker::testing::kIsSanitized) {
    GTEST_SKIP() << "sanitizers reserve addresses";
  }
  EXPECT_EXIT(
      {
        take_all_memory();
        print_error("a line that is longer than what a text holds in itself\n");
        ::_exit(0);
      },
      ::testing::ExitedWithCode(0),
      "a line that is longer than what a text holds in itself"
  );
}

}  // namespace
}  // namespace saker::cli
