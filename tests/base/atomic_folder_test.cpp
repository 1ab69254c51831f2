// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/atomic_folder.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace saker {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

std::ptrdiff_t entries(const std::filesystem::path& dir) {
  return std::distance(std::filesystem::directory_iterator(dir), {});
}

TEST(AtomicFolder, AppearsWhole) {
  const TemporaryDir dir;
  const auto target = dir.path() / "above" / "made";
  AtomicFolder folder(target);
  std::ofstream(folder.path() / "file") << "text";
  EXPECT_FALSE(std::filesystem::exists(target));
  folder.commit();
  EXPECT_TRUE(std::filesystem::exists(target / "file"));
  EXPECT_EQ(entries(target.parent_path()), 1);
}

TEST(AtomicFolder, LeavesNothingUnlessCommitted) {
  const TemporaryDir dir;
  {
    const AtomicFolder folder(dir.path() / "made/");
    std::ofstream(folder.path() / "file") << "text";
  }
  EXPECT_EQ(entries(dir.path()), 0);
}

TEST(AtomicFolder, ALinkLeadsToItsFolder) {
  const TemporaryDir dir;
  std::filesystem::create_directory(dir.path() / "real");
  std::filesystem::create_directory_symlink("real", dir.path() / "link");
  AtomicFolder folder(dir.path() / "link");
  std::ofstream(folder.path() / "file") << "text";
  folder.commit();
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "real" / "file"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir.path() / "link"));
}

// What others left, or made beforehand, is no part of it.
TEST(AtomicFolder, AdoptsNothing) {
  const TemporaryDir dir;
  for (int number = 1; number < 20; ++number) {
    dir.write(fmt::format(".made.{}-{}.tmp/left", ::getpid(), number), "over");
  }
  AtomicFolder folder(dir.path() / "made");
  folder.commit();
  EXPECT_EQ(entries(dir.path() / "made"), 0);
}

// Those of processes that ended, of the same name, and not of a moment ago.
TEST(AtomicFolder, RemovesWhatEndedProcessesLeft) {
  const TemporaryDir dir;
  const auto leave = [&](const std::string& name, std::chrono::minutes age) {
    dir.write(name + "/model.safetensors", "half");
    const auto then = std::filesystem::file_time_type::clock::now() - age;
    std::filesystem::last_write_time(dir.path() / name, then);
  };
  leave(".made.0123456789abcdef.tmp", std::chrono::minutes(5));
  leave(".made.fedcba9876543210.tmp", std::chrono::minutes(0));
  leave(".other.0123456789abcdef.tmp", std::chrono::minutes(5));
  leave(".made.notes.tmp", std::chrono::minutes(5));
  {
    AtomicFolder first(dir.path() / "made");
    std::filesystem::last_write_time(
        first.path(), std::filesystem::file_time_type::clock::now() - std::chrono::minutes(5)
    );
    const AtomicFolder second(dir.path() / "made");
    EXPECT_TRUE(std::filesystem::exists(first.path()));
  }
  EXPECT_FALSE(std::filesystem::exists(dir.path() / ".made.0123456789abcdef.tmp"));
  EXPECT_TRUE(std::filesystem::exists(dir.path() / ".made.fedcba9876543210.tmp"));
  EXPECT_TRUE(std::filesystem::exists(dir.path() / ".other.0123456789abcdef.tmp"));
  EXPECT_TRUE(std::filesystem::exists(dir.path() / ".made.notes.tmp"));
}

TEST(AtomicFolder, ReplacesOnlyEmptyFolders) {
  const TemporaryDir dir;
  std::filesystem::create_directory(dir.path() / "empty");
  AtomicFolder folder(dir.path() / "empty/");
  folder.commit();
  EXPECT_EQ(entries(dir.path()), 1);
  dir.write("full/file", "text");
  expect_error(ErrorCode::kInvalidArgument, {"full", "no empty folder"}, [&] {
    AtomicFolder(dir.path() / "full");
  });
  expect_error(ErrorCode::kInvalidArgument, {"file"}, [&] {
    AtomicFolder(dir.path() / "full/file");
  });
  expect_error(ErrorCode::kNotFound, {"below"}, [&] {
    AtomicFolder(dir.path() / "full/file/below");
  });
  EXPECT_EQ(entries(dir.path()), 2);
}

}  // namespace
}  // namespace saker
