// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json_numbers.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/sanitizers.h"
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>

namespace saker {
namespace {

using testing::expect_error;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(JsonNumbers, ReadsWhatPythonWrites) {
  const auto value = parse_json(
      R"({"a": [NaN, Infinity, -Infinity, 1e400, -1e400], "b": "NaN \" Infinity", "c": 0e-99990})",
      "a test"
  );
  EXPECT_TRUE(std::isnan(value["a"][0].get<double>()));
  EXPECT_EQ(value["a"][1], kInfinity);
  EXPECT_EQ(value["a"][2], -kInfinity);
  EXPECT_EQ(value["a"][3], kInfinity);
  EXPECT_EQ(value["a"][4], -kInfinity);
  EXPECT_EQ(value["b"], "NaN \" Infinity");
  EXPECT_EQ(value["c"], 0.0);
  EXPECT_EQ(parse_json("0e-99990", "a test"), 0.0);
}

TEST(JsonNumbers, KeepsTheDigitsOfIntegers) {
  const std::string digits = "-1000000000000000000001";
  EXPECT_EQ(json_digits(parse_json(digits, "a test")), digits);
  EXPECT_EQ(parse_json("18446744073709551615", "a test"), 18446744073709551615U);
  EXPECT_EQ(json_digits(parse_json("18446744073709551616", "a test")), "18446744073709551616");
  const std::string most(4300, '7');
  EXPECT_EQ(json_digits(parse_json("[" + most + "]", "a test")[0]), most);
  EXPECT_EQ(json_digits(Json(7)), std::nullopt);
}

TEST(JsonNumbers, EndsAtLongOnesInTime) {
  const auto begin = std::chrono::steady_clock::now();
  expect_error(ErrorCode::kCorruptData, {"8000000 digits", "4300"}, [] {
    parse_json(std::string(8'000'000, '7'), "a test");
  });
  EXPECT_EQ(parse_json("0." + std::string(8'000'000, '7'), "a test"), 7.0 / 9);
  const std::chrono::seconds bound(saker::testing::kHasThreadSanitizer ? 100 : 5);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, bound);
}

TEST(JsonNumbers, WritesThemAsPython) {
  const std::string text =
      R"({"a":[NaN,Infinity,-Infinity,1000000000000000000001,0.1],"b":{},"c":[],"d":"\"é"})";
  EXPECT_EQ(write_json(parse_json(text, "a test")), text);
  EXPECT_EQ(write_json(Json{{"a", {1, NAN}}}, 2), "{\n  \"a\": [\n    1,\n    NaN\n  ]\n}");
  EXPECT_EQ(write_json(Json("\xff")), "\"\ufffd\"");
}

TEST(JsonNumbers, AreRefusedWhereNumbersAreNeeded) {
  const auto value = parse_json(
      R"({"nan": NaN, "inf": -Infinity, "long": 1000000000000000000001, "far": 1e400})", "a test"
  );
  expect_error(ErrorCode::kCorruptData, {"'nan' is NaN", "finite"}, [&] {
    json_double(value, "nan", 0);
  });
  expect_error(ErrorCode::kCorruptData, {"'inf' is -Infinity", "an integer"}, [&] {
    json_int(value, "inf", 0);
  });
  expect_error(ErrorCode::kCorruptData, {"'long' is 1000000000000000000001", "integer"}, [&] {
    json_int(value, "long", 0);
  });
  expect_error(ErrorCode::kCorruptData, {"'far' is Infinity"}, [&] {
    json_double(value, "far", 0);
  });
  EXPECT_EQ(json_double(value, "long", 0), 1e21);
}

}  // namespace
}  // namespace saker
