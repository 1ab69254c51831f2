// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/dispatch/dispatch.h"

#include "saker/base/error.h"
#include "saker/base/instruction_set.h"

#include "tests/kernels/instruction_sets.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

bool has(const std::vector<std::string>& names, const char* name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Dispatch, SetsAreThoseOfTheProcessor) {
  const auto names = instruction_sets();
  EXPECT_TRUE(has(names, "portable"));
#if defined(__aarch64__)
  EXPECT_TRUE(has(names, "neon"));
#else
  EXPECT_FALSE(has(names, "neon"));
#endif
  for (const InstructionSet set : runnable_sets()) {
    EXPECT_TRUE(has(names, std::string(name_of(set)).c_str())) << name_of(set);
  }
}

TEST(Dispatch, SelectsByName) {
  const std::string before(kernel_table_name());
  for (const std::string& name : instruction_sets()) {
    select_kernel_table(name);
    EXPECT_EQ(kernel_table_name(), name);
  }
  const std::string last(kernel_table_name());
  EXPECT_THROW(select_kernel_table("sse5"), Error);
  EXPECT_EQ(kernel_table_name(), last);
  select_kernel_table(before);
}

}  // namespace
}  // namespace saker::kernels
