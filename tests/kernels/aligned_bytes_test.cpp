// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/aligned_bytes.h"

#include "saker/base/error.h"
#include "saker/base/memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <utility>

namespace saker::kernels {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

#if defined(__linux__)
// Of this process.
long resident_pages() {
  long size = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident;
}
#endif

TEST(AlignedBytes, StartAtACacheLineAndLargeOnesAtAHugePage) {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{65}, 3 * kMegabyte, 9 * kMegabyte + 1}) {
    AlignedBytes bytes(size);
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    EXPECT_EQ(at % 64, 0U);
#if defined(__linux__)
    EXPECT_TRUE(size < 8 * kMegabyte || at % (2 * kMegabyte) == 0);
#endif
    std::memset(bytes.data(), 1, size);  // Sanitizers and the system watch.
    EXPECT_EQ(bytes.size(), size);
  }
}

#if defined(__linux__)
TEST(AlignedBytes, LargeOnesGoBackToTheSystem) {
  constexpr std::size_t kSize = 64 * kMegabyte;
  keep_freed_memory(512 << 20);
  AlignedBytes bytes(kSize);
  std::memset(bytes.data(), 1, kSize);
  const long before = resident_pages();
  bytes = AlignedBytes();
  ASSERT_GT(before, 0);
  const long pages = static_cast<long>(kSize) / sysconf(_SC_PAGESIZE);
  EXPECT_LT(resident_pages(), before - pages / 2);
}
#endif

TEST(AlignedBytes, MoveAndGrow) {
  AlignedBytes bytes(16 * kMegabyte);
  std::byte* const data = bytes.data();
  AlignedBytes other = std::move(bytes);
  EXPECT_EQ(other.data(), data);
  other.reserve(kMegabyte);
  EXPECT_EQ(other.data(), data);
  other.reserve(32 * kMegabyte);
  EXPECT_EQ(other.size(), 32 * kMegabyte);
  std::memset(other.data(), 1, other.size());
}

TEST(AlignedBytes, MoreThanThereIsIsAnError) {
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4}) {
    try {
      AlignedBytes bytes(size);
      FAIL() << size << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCapacity);
    }
  }
}

}  // namespace
}  // namespace saker::kernels
