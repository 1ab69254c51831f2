// SPDX-License-Identifier: Apache-2.0
#include "saker/base/checked_reader.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace saker {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

std::string read_text(CheckedReader& reader, std::size_t count) {
  std::string text(count, '\0');
  reader.read(std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint64_t sum_of(std::string_view text) {
  return checksum(std::as_bytes(std::span(text)));
}

TEST(CheckedReader, GivesPartsWithTheirChecksums) {
  const TemporaryDir dir;
  std::string text;
  for (int i = 0; i < 700'000; ++i) {  // Several pieces.
    text.push_back(static_cast<char>(i * 7 + i / 1000));
  }
  CheckedReader reader(dir.write("file", text));
  EXPECT_EQ(reader.size(), text.size());
  EXPECT_EQ(read_text(reader, 3), text.substr(0, 3));
  EXPECT_EQ(reader.take_checksum(), sum_of(text.substr(0, 3)));
  EXPECT_EQ(read_text(reader, 0), "");
  EXPECT_EQ(read_text(reader, 500'000), text.substr(3, 500'000));
  EXPECT_EQ(read_text(reader, reader.left()), text.substr(500'003));
  EXPECT_EQ(reader.take_checksum(), sum_of(text.substr(3)));
  EXPECT_EQ(reader.take_checksum(), sum_of(""));
  EXPECT_EQ(reader.left(), 0U);
}

TEST(CheckedReader, NoticesWhereTheFileEnds) {
  const TemporaryDir dir;
  const auto path = dir.write("file", "0123456789");
  CheckedReader reader(path);
  expect_error(ErrorCode::kCorruptData, {"ends early"}, [&] { read_text(reader, 11); });
  EXPECT_EQ(read_text(reader, 4), "0123");
  std::filesystem::resize_file(path, 6);
  expect_error(ErrorCode::kCorruptData, {"ends early"}, [&] { read_text(reader, 5); });
}

TEST(CheckedReader, RefusesWhatIsNoFile) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kNotFound, {"missing"}, [&] { CheckedReader(dir.path() / "missing"); });
  expect_error(ErrorCode::kInvalidArgument, {"not a regular file"}, [&] {
    const CheckedReader reader(dir.path());
  });
}

}  // namespace
}  // namespace saker
