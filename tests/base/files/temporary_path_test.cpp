// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/temporary_path.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>

namespace saker {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

TEST(TemporaryPath, LiesBesideItsFile) {
  const auto path = temporary_path("/a/folder/model.safetensors");
  EXPECT_EQ(path.parent_path(), "/a/folder");
  const std::string name = path.filename().string();
  EXPECT_TRUE(name.starts_with(".model.safetensors.")) << name;
  EXPECT_TRUE(name.ends_with(".tmp")) << name;
  EXPECT_TRUE(temporary_path("file").parent_path().empty());
}

// 64 random bits are sixteen digits; in as many names all of their places must change.
TEST(TemporaryPath, IsRandomInAllDigits) {
  constexpr std::size_t kDigits = 16;
  std::set<std::string> seen;
  std::array<std::set<char>, kDigits> at;
  for (int i = 0; i < 200; ++i) {
    const std::string name = temporary_path("f").filename().string();
    ASSERT_EQ(name.size(), std::string(".f.").size() + kDigits + std::string(".tmp").size());
    seen.insert(name);
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      at.at(digit).insert(name[3 + digit]);
    }
  }
  EXPECT_EQ(seen.size(), 200U);
  for (const auto& digits : at) {
    EXPECT_GT(digits.size(), 8U);
  }
}

TEST(TemporaryPath, FitsWhereTheNameFits) {
  const TemporaryDir dir;
  const auto path = temporary_path(dir.path() / std::string(255, 'x'));
  make_new_folder(path, path);
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST(MakeNewFolder, TakesNothingThatIsThere) {
  const TemporaryDir dir;
  std::filesystem::create_directory(dir.path() / "folder");
  std::filesystem::create_directory_symlink(dir.path() / "folder", dir.path() / "link");
  for (const char* name : {"folder", "link"}) {
    expect_error(ErrorCode::kNotFound, {"shown", "exists"}, [&] {
      make_new_folder(dir.path() / name, "shown");
    });
  }
}

}  // namespace
}  // namespace saker
