// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/runtime/page_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

namespace saker::kernels {
namespace {

constexpr std::size_t kKilobyte = std::size_t{1} << 10;
constexpr std::size_t kMegabyte = std::size_t{1} << 20;

std::vector<std::byte*> take_pages(std::size_t bytes, int count) {
  std::vector<std::byte*> pages;
  pages.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    pages.push_back(take_page(bytes));
  }
  return pages;
}

void give_back(const std::vector<std::byte*>& pages, std::size_t bytes) {
  for (std::byte* page : pages) {
    give_page_back(page, bytes);
  }
}

// With so many pages taken one by one that further ones are cut from buffers.
class PageMemory : public ::testing::Test {
 protected:
  void TearDown() override { give_back(singles_, kMegabyte); }

 private:
  std::vector<std::byte*> singles_ = take_pages(kMegabyte, 8);
};

bool holds_only(const std::byte* page, std::size_t bytes, std::byte value) {
  return std::all_of(page, page + bytes, [&](std::byte b) { return b == value; });
}

TEST_F(PageMemory, PagesOfAnySizeAreApart) {
  for (const std::size_t bytes :
       {std::size_t{1},
        16 * kKilobyte,
        100 * kKilobyte + 8,
        256 * kKilobyte + 64,
        2 * kMegabyte,
        2 * kMegabyte + 1,
        9 * kMegabyte}) {
    const auto pages = take_pages(bytes, 70);  // More than a buffer holds, from 128 KB on.
    for (std::size_t i = 0; i < pages.size(); ++i) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages[i]) % 64, 0U);
      std::memset(pages[i], static_cast<int>(i), bytes);
    }
    for (std::size_t i = 0; i < pages.size(); ++i) {
      EXPECT_TRUE(holds_only(pages[i], bytes, static_cast<std::byte>(i))) << bytes << ", " << i;
    }
    give_back(pages, bytes);
  }
}

TEST_F(PageMemory, PagesFollowEachOther) {
  constexpr std::size_t kBytes = 192 * kKilobyte;
  const auto pages = take_pages(kBytes, 8);
  for (std::size_t i = 1; i < pages.size(); ++i) {
    EXPECT_EQ(pages[i], pages[i - 1] + kBytes);
  }
  give_back(pages, kBytes);
}

TEST_F(PageMemory, WhatIsFreeIsTakenFirst) {
  constexpr std::size_t kBytes = 320 * kKilobyte;
  auto pages = take_pages(kBytes, 50);  // Two buffers, full.
  std::byte* const free = pages[7];
  give_page_back(free, kBytes);
  pages[7] = take_page(kBytes);
  EXPECT_EQ(pages[7], free);
  give_back(pages, kBytes);
}

#if defined(__linux__)
long resident_bytes() {
  long size = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST_F(PageMemory, GoesBackToTheSystem) {
  constexpr std::size_t kBytes = 512 * kKilobyte;
  constexpr int kCount = 128;
  const auto pages = take_pages(kBytes, kCount);
  for (std::byte* page : pages) {
    std::memset(page, 1, kBytes);
  }
  const long before = resident_bytes();
  give_back(pages, kBytes);
  ASSERT_GT(before, 0);
  EXPECT_LT(resident_bytes(), before - static_cast<long>(kBytes) * kCount / 2);
}
#endif

// Whether nobody else wrote into the pages that a thread took.
bool keeps_its_pages(std::size_t bytes, int count, int value) {
  const auto pages = take_pages(bytes, count);
  for (std::byte* page : pages) {
    std::memset(page, value, bytes);
  }
  const bool kept = std::ranges::all_of(pages, [&](const std::byte* page) {
    return holds_only(page, bytes, static_cast<std::byte>(value));
  });
  give_back(pages, bytes);
  return kept;
}

TEST_F(PageMemory, ThreadsTakeAndGiveBack) {
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < 20; ++round) {
        EXPECT_TRUE(keeps_its_pages(64 * kKilobyte, 40 * t, t));
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace saker::kernels
