// SPDX-License-Identifier: Apache-2.0
#include "saker/base/instruction_set.h"

#include "saker/base/row_loops.h"

#include "tests/support/each_instruction_set.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace saker {

namespace portable {
extern const RowLoops row_loops_bodies;
}

namespace {

using testing::expect_error;
using testing::for_each_instruction_set;

TEST(InstructionSet, SetsAreSortedAndBeginWithPortable) {
  const auto& sets = runnable_sets();
  EXPECT_EQ(sets.front(), InstructionSet::kPortable);
  EXPECT_TRUE(std::ranges::is_sorted(sets));
}

TEST(InstructionSet, EachCanBeSelectedByItsName) {
  for_each_instruction_set([](InstructionSet set) { EXPECT_EQ(instruction_set(), set); });
}

TEST(InstructionSet, AnUnknownNameIsAnErrorThatNamesTheOthers) {
  const InstructionSet before = instruction_set();
  expect_error(ErrorCode::kUnsupported, {"sse5", "this processor can run portable"}, [] {
    select_instruction_set("sse5");
  });
  EXPECT_EQ(instruction_set(), before);
}

// Not only the kernels: all loops that are compiled for several sets.
TEST(InstructionSet, LoopsAreThoseOfTheSetInUse) {
  const std::string before(name_of(instruction_set()));
  select_instruction_set("portable");
  EXPECT_EQ(&row_loops(), &portable::row_loops_bodies);
  select_instruction_set(before);
  const bool has_own = before.starts_with("avx") || before == "amx";
  EXPECT_EQ(&row_loops() != &portable::row_loops_bodies, has_own);
}

TEST(InstructionSet, BodiesAreTheBestThatTheSetIncludes) {
  const int portable = 0;
  const int avx2 = 1;
  const BodiesBySet<int> bodies{
      {InstructionSet::kPortable, &portable}, {InstructionSet::kAvx2, &avx2}
  };
  for_each_instruction_set([&](InstructionSet set) {
    EXPECT_EQ(&bodies.in_use(), set < InstructionSet::kAvx2 ? &portable : &avx2);
  });
}

}  // namespace
}  // namespace saker
