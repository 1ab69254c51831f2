// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/file_failure.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <ios>
#include <stdexcept>
#include <string>

namespace saker {
namespace {

std::string told(const std::exception& error) {
  return file_failure(error).value_or("none");
}

TEST(FileFailure, NamesTheFileAndTheReason) {
  const testing::TemporaryDir dir;
  std::filesystem::create_symlink("loop", dir.path() / "loop");
  try {
    const bool is_file = std::filesystem::is_regular_file(dir.path() / "loop");
    FAIL() << "expected an error, got " << is_file;
  } catch (const std::exception& error) {
    EXPECT_NE(told(error).find("loop': Too many levels"), std::string::npos) << told(error);
  }
}

TEST(FileFailure, KnowsStreams) {
  EXPECT_NE(told(std::ios_base::failure("x")).find("cannot be read"), std::string::npos);
}

TEST(FileFailure, IsNoOtherError) {
  EXPECT_EQ(told(std::runtime_error("x")), "none");
}

}  // namespace
}  // namespace saker
