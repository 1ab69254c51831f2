// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/no_memory.h"

#include <gtest/gtest.h>

#include <csignal>
#include <new>
#include <stdexcept>
#include <thread>

namespace saker::cli {
namespace {

template <typename Exception>
void throw_on_a_thread(const Exception& error) {
  explain_shortage_anywhere();
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

}  // namespace
}  // namespace saker::cli
