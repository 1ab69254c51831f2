// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/file_heads.h"

#include "saker/base/error.h"
#include "saker/load/inspect/inspect.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

constexpr std::uintmax_t kLarge = std::uintmax_t{1} << 32;

std::uintmax_t wanted(std::string_view name, std::string_view begin, std::uintmax_t size = kLarge) {
  return bytes_of_header(name, std::as_bytes(std::span(begin)), size);
}

// As little-endian files have it.
template <typename T>
std::string bytes(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

TEST(FileHeads, SafetensorsSayHowLongTheirHeadersAre) {
  EXPECT_GT(wanted("x.safetensors", ""), 8U);
  EXPECT_EQ(wanted("x.safetensors", "", 10), 10U);
  EXPECT_EQ(wanted("x.safetensors", bytes<std::uint64_t>(1'000'000)), 1'000'008U);
  EXPECT_EQ(wanted("x.safetensors", bytes<std::uint64_t>(2) + "{}", 10), 10U);
  expect_error(ErrorCode::kCorruptData, {"x.safetensors", "expected at most"}, [] {
    wanted("x.safetensors", bytes<std::uint64_t>(1'000'000'000));
  });
  expect_error(ErrorCode::kCorruptData, {"ends inside the header"}, [] {
    wanted("x.safetensors", bytes<std::uint64_t>(100), 50);
  });
  expect_error(ErrorCode::kCorruptData, {"too short"}, [] { wanted("x.safetensors", "abc", 3); });
}

TEST(FileHeads, GgufIsReadUntilItsHeaderEnds) {
  const std::string count = bytes<std::uint64_t>(0);
  const std::string empty = "GGUF" + bytes<std::uint32_t>(3) + count + count;
  EXPECT_GT(wanted("x.gguf", ""), empty.size());
  EXPECT_EQ(wanted("x.gguf", empty), empty.size());
  EXPECT_EQ(wanted("x.gguf", empty.substr(0, 20)), 40U);
  // A key that goes on behind the bytes that are there.
  const std::string open = "GGUF" + bytes<std::uint32_t>(3) + count + bytes<std::uint64_t>(1) +
                           bytes<std::uint64_t>(1) + "k" + bytes<std::uint32_t>(8) +
                           bytes<std::uint64_t>(1000);
  EXPECT_EQ(wanted("x.gguf", open), 2 * open.size());
  expect_error(ErrorCode::kCorruptData, {"x.gguf", "the file ends"}, [&] {
    wanted("x.gguf", open, open.size() + 10);
  });
  expect_error(ErrorCode::kCorruptData, {"does not begin with GGUF"}, [] {
    wanted("x.gguf", "xxxxxxxx");
  });
}

TEST(FileHeads, FilesHaveTheirSizeAndTakeNoRoom) {
  const TemporaryDir dir;
  const auto path = dir.path() / "model.safetensors";
  const std::string header =
      R"({"a":{"dtype":"U8","shape":[1073741824],"data_offsets":[0,1073741824]}})";
  const std::uintmax_t size = 8 + header.size() + (std::uintmax_t{1} << 30);
  write_file_head(path, bytes<std::uint64_t>(header.size()) + header, size);
  EXPECT_EQ(std::filesystem::file_size(path), size);
  EXPECT_EQ(inspect(path, {}, Weights::kToCome).parameters, std::int64_t{1} << 30);
  expect_error(ErrorCode::kCapacity, {"cannot be written with"}, [&] {
    write_file_head(dir.path() / "none" / "x", "x", 1);
  });
}

}  // namespace
}  // namespace saker::load
