// SPDX-License-Identifier: Apache-2.0
#include "saker/base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace saker {
namespace {

// Sanitizers bring a malloc of their own, and other C libraries have no such setting.
#if defined(__GLIBC__) && !defined(SAKER_SANITIZED)
// Pages that the system had to hand out so far.
long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Faults of `rounds` times allocating, writing and freeing so much.
long faults_of(std::size_t bytes, int rounds) {
  const long before = page_faults();
  for (int round = 0; round < rounds; ++round) {
    auto* const memory = static_cast<volatile char*>(std::malloc(bytes));
    for (std::size_t i = 0; i < bytes; i += 1024) {
      memory[i] = 1;
    }
    std::free(const_cast<char*>(memory));
  }
  return page_faults() - before;
}

TEST(Memory, FreedMemoryIsUsedAgain) {
  constexpr std::size_t kBytes = std::size_t{48} << 20;
  const long pages = static_cast<long>(kBytes) / sysconf(_SC_PAGESIZE);
  ASSERT_TRUE(keep_freed_memory(64 << 20));
  faults_of(kBytes, 1);
  EXPECT_LT(faults_of(kBytes, 8), pages);
}
#endif

TEST(Memory, ErrorsSayWhatTheMachineRanOutOf) {
  constexpr std::string_view kMemory = "there is not enough memory";
  EXPECT_EQ(out_of_memory_reason(std::bad_alloc()), kMemory);
  EXPECT_EQ(out_of_memory_reason(std::runtime_error("std::bad_alloc")), kMemory);
  EXPECT_EQ(
      out_of_memory_reason(std::runtime_error("[malloc] Unable to allocate 5 bytes.")), kMemory
  );
  EXPECT_EQ(out_of_memory_reason(std::runtime_error("[matmul] shapes")), std::nullopt);
  const auto threads = std::make_error_code(std::errc::resource_unavailable_try_again);
  EXPECT_THAT(
      out_of_memory_reason(std::system_error(threads)).value_or(""), ::testing::HasSubstr("threads")
  );
  const auto other = std::make_error_code(std::errc::permission_denied);
  EXPECT_EQ(out_of_memory_reason(std::system_error(other)), std::nullopt);
}

TEST(Memory, TheMachineHasMoreThanThisProcessUses) {
  EXPECT_GT(peak_memory_bytes(), std::size_t{1} << 20);
  EXPECT_GT(usable_memory_bytes(), peak_memory_bytes() / 2);
}

}  // namespace
}  // namespace saker
