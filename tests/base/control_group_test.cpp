// SPDX-License-Identifier: Apache-2.0
#include "saker/base/control_group.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace saker {
namespace {

class ControlGroup : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::size_t limit() const {
    return group_memory_bytes(folder_.path() / "list", folder_.path() / "groups");
  }

 private:
  testing::TemporaryDir folder_;
};

TEST_F(ControlGroup, WithoutFilesThereIsNoLimit) {
  EXPECT_EQ(limit(), SIZE_MAX);
  write("list", "0::/user\nnonsense\n7:memory\n");
  EXPECT_EQ(limit(), SIZE_MAX);
}

TEST_F(ControlGroup, TheSmallestLimitAroundCounts) {
  write("list", "0::/jobs/one\n");
  write("groups/jobs/one/memory.max", "max\n");
  EXPECT_EQ(limit(), SIZE_MAX);
  write("groups/jobs/memory.max", "5000000\n");
  EXPECT_EQ(limit(), 5000000U);
  write("groups/jobs/one/memory.max", "4000000\n");
  EXPECT_EQ(limit(), 4000000U);
}

TEST_F(ControlGroup, TheFirstVersionHasAFolderForMemory) {
  write("list", "12:cpu,cpuacct:/docker/ab\n5:hugetlb,memory:/docker/ab\n");
  write("groups/memory.max", "1\n");
  // As in a container, which sees its own group as the outermost one.
  write("groups/memory/memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(limit(), 3000000U);
}

}  // namespace
}  // namespace saker
