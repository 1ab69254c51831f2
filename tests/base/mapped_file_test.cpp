// SPDX-License-Identifier: Apache-2.0
#include "saker/base/mapped_file.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace saker {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

std::string text_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedFile, HoldsTheBytes) {
  const TemporaryDir dir;
  EXPECT_EQ(text_of(*MappedFile::open(dir.write("file", "hello"))), "hello");
}

TEST(MappedFile, OutlivesItsName) {
  const TemporaryDir dir;
  const auto path = dir.write("file", "hello");
  const auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  EXPECT_EQ(text_of(*file), "hello");
}

TEST(MappedFile, MayBeEmpty) {
  const TemporaryDir dir;
  const auto file = MappedFile::open(dir.write("empty", ""));
  EXPECT_TRUE(file->bytes().empty());
  file->release(0, 100);
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kNotFound, {"missing", "No such file"}, [&] {
    MappedFile::open(dir.path() / "missing");
  });
  expect_error(ErrorCode::kInvalidArgument, {"not a regular file"}, [&] {
    MappedFile::open(dir.path());
  });
  expect_error(ErrorCode::kInvalidArgument, {"/dev/zero", "not a regular file"}, [] {
    MappedFile::open("/dev/zero");
  });
  const auto pipe = dir.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(ErrorCode::kInvalidArgument, {"pipe", "not a regular file"}, [&] {
    MappedFile::open(pipe);
  });
  expect_error(ErrorCode::kNotFound, {"'line\\x0abreak'"}, [&] {
    MappedFile::open("line\nbreak");
  });
}

#ifdef __linux__

// Pages of the mapping that are in this process's memory.
std::size_t resident_pages(const std::byte* data, std::size_t pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::FILE* maps = std::fopen("/proc/self/smaps", "r");
  std::size_t kilobytes = 0;
  char line[512];
  bool ours = false;
  while (maps != nullptr && std::fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
      const auto address = reinterpret_cast<unsigned long>(data);
      ours = begin <= address && address < end;
    }
    std::size_t rss = 0;
    if (ours && std::sscanf(line, "Rss: %zu kB", &rss) == 1) {
      kilobytes += rss;
    }
  }
  if (maps != nullptr) {
    std::fclose(maps);
  }
  EXPECT_LE(kilobytes * 1024, pages * page);
  return kilobytes * 1024 / page;
}

TEST(MappedFile, GivesPagesBackAndReadsThemAgain) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  constexpr std::size_t kPages = 64;
  const TemporaryDir dir;
  const auto file = MappedFile::open(dir.write("file", std::string(kPages * page, 'x')));
  const auto count_x = [&] {
    std::size_t count = 0;
    for (const std::byte b : file->bytes()) {
      count += b == std::byte{'x'} ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(count_x(), kPages * page);
  ASSERT_EQ(resident_pages(file->bytes().data(), kPages), kPages);
  // One byte short of two borders: pages 1 to 9 are whole.
  file->release(1, 11 * page - 2);
  EXPECT_EQ(resident_pages(file->bytes().data(), kPages), kPages - 9);
  file->release(0, std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(resident_pages(file->bytes().data(), kPages), 0U);
  EXPECT_EQ(count_x(), kPages * page);
}

#endif  // __linux__

TEST(ReadFile, KeepsItsBound) {
  const TemporaryDir dir;
  const auto path = dir.write("file", "12345");
  EXPECT_EQ(read_file(path, 5), "12345");
  EXPECT_EQ(read_file(dir.write("empty", ""), 0), "");
  expect_error(ErrorCode::kCorruptData, {"5 bytes", "at most 4"}, [&] { read_file(path, 4); });
}

}  // namespace
}  // namespace saker
