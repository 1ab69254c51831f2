// SPDX-License-Identifier: Apache-2.0
#include "saker/base/characters/letter_case.h"

#include <gtest/gtest.h>

#include <string_view>

namespace saker {
namespace {

TEST(LetterCase, ChangesLettersOfAsciiAlone) {
  EXPECT_EQ(ascii_lower("Q4_K_M@[Zz`{ \xc3\x89"), "q4_k_m@[zz`{ \xc3\x89");
  EXPECT_EQ(ascii_upper("from@[Zz`{ \xc3\xa9"), "FROM@[ZZ`{ \xc3\xa9");
  EXPECT_EQ(ascii_lower(std::string_view("A\0B", 3)), std::string_view("a\0b", 3));
  EXPECT_EQ(ascii_lower(""), "");
}

}  // namespace
}  // namespace saker
