// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/json_lines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace saker::cli {
namespace {

class JsonLinesTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& content) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "lines.jsonl";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
};

TEST_F(JsonLinesTest, SkipsBlankLinesAndCountsThem) {
  JsonLines lines(write("{\"a\":1}\n\n  \t\r\n{\"b\":2}"));
  EXPECT_EQ(lines.next(), "{\"a\":1}");
  EXPECT_EQ(lines.next(), "{\"b\":2}");
  EXPECT_TRUE(lines.where().ends_with(":4")) << lines.where();
  EXPECT_EQ(lines.next(), std::nullopt);
}

TEST_F(JsonLinesTest, EmptyFileHasNoRecords) {
  JsonLines lines(write(""));
  EXPECT_EQ(lines.next(), std::nullopt);
}

TEST_F(JsonLinesTest, MissingFileIsNotFound) {
  try {
    JsonLines lines("/nonexistent/lines.jsonl");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

TEST(RecordAnswers, EchoTheIdFirst) {
  EXPECT_EQ(with_id("x", {{"a", 1}}).dump(), R"({"id":"x","a":1})");
  EXPECT_EQ(with_id(Json(Json::value_t::discarded), {{"a", 1}}).dump(), R"({"a":1})");
  const Error error(ErrorCode::kInvalidArgument, "two\nlines");
  EXPECT_EQ(
      record_error(7, error).dump(),
      R"({"id":7,"error":{"code":"invalid_argument","message":"two lines"}})"
  );
}

}  // namespace
}  // namespace saker::cli
