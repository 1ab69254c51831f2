// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/json_lines.h"

#include "saker/cli/io/output.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

namespace saker::cli {
namespace {

class JsonLinesTest : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& content) const {
    return folder_.write("lines.jsonl", content);
  }

  testing::TemporaryDir folder_;
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

TEST_F(JsonLinesTest, LinesLongerThanABuffer) {
  const std::string long_line = "\"" + std::string(1'000'000, 'x') + "\"";
  const std::string text = long_line + "\n" + long_line + "\r\n\n{}";
  JsonLines lines(write(text));
  EXPECT_EQ(lines.next(), long_line);
  EXPECT_EQ(lines.position(), long_line.size() + 1);
  EXPECT_EQ(lines.next(), long_line + "\r");
  EXPECT_EQ(lines.next(), "{}");
  EXPECT_EQ(lines.line(), 4);
  EXPECT_EQ(lines.next(), std::nullopt);
  EXPECT_EQ(lines.position(), text.size());
}

TEST_F(JsonLinesTest, ALineAboveTheBoundIsRefused) {
  const auto path = write("{}\n");
  std::filesystem::resize_file(path, kMaxTextBytes + 4);  // A hole: NULs without a line's end.
  JsonLines lines(path);
  EXPECT_EQ(lines.next(), "{}");
  testing::expect_error(ErrorCode::kInvalidArgument, {"lines.jsonl:2", "64 MiB"}, [&] {
    lines.next();
  });
}

TEST_F(JsonLinesTest, PipesAreReadAsTheyCome) {
  const auto path = folder_.path() / "lines.pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::jthread writer([&] {
    std::ofstream pipe(path);
    pipe << "{\"a\"" << std::flush << ":1}\n2" << std::flush << "2\n";
  });
  JsonLines lines(path);
  EXPECT_EQ(lines.next(), "{\"a\":1}");
  EXPECT_EQ(lines.next(), "22");
  EXPECT_EQ(lines.next(), std::nullopt);
}

TEST_F(JsonLinesTest, WhatCannotBeReadIsNotFound) {
  testing::expect_error(ErrorCode::kNotFound, {"can't be opened", "directory"}, [&] {
    JsonLines lines(folder_.path());
  });
  testing::expect_error(ErrorCode::kNotFound, {"/proc/self/mem", "can't be read"}, [] {
    JsonLines("/proc/self/mem").next();
  });
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
