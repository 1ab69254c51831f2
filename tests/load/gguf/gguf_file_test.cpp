// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_file.h"

#include "saker/base/error.h"
#include "saker/base/mapped_file.h"

#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::gguf_number;
using saker::testing::gguf_string;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ80 = 8;
constexpr std::uint32_t kArray = 9;

Header parse(const std::string& file) {
  return parse_gguf(std::as_bytes(std::span(file)), "file");
}

void expect_corrupt(const std::string& file, const std::vector<std::string_view>& words) {
  expect_error(ErrorCode::kCorruptData, words, [&] { parse(file); });
}

GgufBuilder small() {
  GgufBuilder builder;
  builder.string("general.architecture", "llama")
      .integer("llama.block_count", 2)
      .number("llama.rope.freq_base", 1e-6F)
      .boolean("flag", true)
      .strings("names", {"a", "", "ccc"})
      .floats("scores", {0.5F, -1.0F})
      .tensor("one", {2, 3}, kF32, std::string(24, 'a'))
      .tensor("two", {32, 2}, kQ80, std::string(68, 'b'));
  return builder;
}

TEST(GgufFileTest, ReadsKeysAndTensors) {
  const std::string file = small().file();
  const Header header = parse(file);
  EXPECT_EQ(header.string("general.architecture"), "llama");
  EXPECT_EQ(header.integer("llama.block_count"), 2);
  EXPECT_EQ(header.number("llama.rope.freq_base"), 1e-6);
  EXPECT_EQ(header.boolean("flag"), true);
  EXPECT_EQ(header.strings("names"), (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(header.numbers("scores"), (std::vector<double>{0.5, -1.0}));
  EXPECT_EQ(header.integer("absent"), std::nullopt);
  EXPECT_TRUE(header.strings("absent").empty());
  EXPECT_EQ(
      header.keys("llama."), (std::vector<std::string>{"llama.block_count", "llama.rope.freq_base"})
  );
  ASSERT_EQ(header.tensors.size(), 2U);
  const TensorEntry& two = header.tensors[1];
  EXPECT_EQ(two.name, "two");
  EXPECT_EQ(two.type, TensorType::kQ80);
  EXPECT_EQ(two.shape, (std::vector<std::int64_t>{2, 32}));
  EXPECT_EQ(file.substr(two.begin, two.end - two.begin), std::string(68, 'b'));
}

// Another process may write to the file: what was checked is what is read.
TEST(GgufFileTest, KeepsWhatItChecked) {
  std::string file = small().file();
  const Header header = parse(file);
  const Header copy = header;
  file.assign(file.size(), '\xff');
  for (const Header* held : {&header, &copy}) {
    EXPECT_EQ(held->string("general.architecture"), "llama");
    EXPECT_EQ(held->strings("names"), (std::vector<std::string_view>{"a", "", "ccc"}));
    EXPECT_EQ(held->numbers("scores"), (std::vector<double>{0.5, -1.0}));
  }
}

// A file of hardly any size can promise so much.
TEST(GgufFileTest, RefusesAHeaderBeyondAllBounds) {
  const TemporaryDir dir;
  constexpr std::uint64_t kBytes = kMaxHeaderBytes + 1;
  const auto start = gguf_number<std::uint32_t>(0) + gguf_number(kBytes);
  const auto path = dir.write("file", GgufBuilder().raw("zeros", kArray, start).file());
  std::filesystem::resize_file(path, 2 * kBytes);
  expect_error(ErrorCode::kCorruptData, {"zeros", "expected the header to end before byte"}, [&] {
    parse_gguf(MappedFile::open(path)->bytes(), "file");
  });
}

TEST(GgufFileTest, HonoursTheAlignment) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.integer("general.alignment", 64).tensor("one", {2}, kF32, "12345678");
  builder.tensor("two", {1}, kF32, "abcd");
  const std::string file = builder.file();
  const Header header = parse(file);
  EXPECT_EQ(header.tensors[1].begin % 64, 0U);
  EXPECT_EQ(file.substr(header.tensors[1].begin, 4), "abcd");
  for (const std::uint32_t alignment : {0U, 3U, 48U}) {
    expect_corrupt(
        GgufBuilder().integer("general.alignment", alignment).file(), {"general.alignment"}
    );
  }
}

TEST(GgufFileTest, RefusesOtherVersionsByName) {
  const auto with_version = [](std::uint32_t version) {
    GgufBuilder builder = small();
    builder.version = version;
    return builder.file();
  };
  EXPECT_NO_THROW(parse(with_version(2)));
  const auto unsupported = [&](std::uint32_t version, std::string_view word) {
    const std::string file = with_version(version);
    expect_error(ErrorCode::kUnsupported, {word}, [&] { parse(file); });
  };
  unsupported(1, "version 1");
  unsupported(4, "version 4");
  unsupported(0, "version 0");
  unsupported(0x03000000, "big-endian");
  expect_corrupt("GGML", {"does not begin with GGUF"});
  expect_corrupt("", {"ends at byte 0"});
}

TEST(GgufFileTest, RefusesLyingCounts) {
  constexpr auto kMany = std::numeric_limits<std::uint64_t>::max();
  GgufBuilder keys = small();
  keys.key_count = kMany;
  expect_corrupt(keys.file(), {"file"});
  GgufBuilder tensors = small();
  tensors.tensor_count = kMany;
  expect_corrupt(tensors.file(), {"file"});
  for (const std::uint32_t type : {0U, 4U, 8U, 9U, 12U}) {
    const std::string array = gguf_number(type) + gguf_number(kMany);
    expect_corrupt(GgufBuilder().raw("many", kArray, array).file(), {"many"});
  }
  expect_corrupt(GgufBuilder().raw("text", 8, gguf_number(kMany)).file(), {"text"});
  expect_corrupt(GgufBuilder().raw("odd", 13, "").file(), {"type 13"});
}

TEST(GgufFileTest, RefusesDeepNesting) {
  std::string array;
  for (int i = 0; i < 1000; ++i) {
    array += gguf_number(kArray) + gguf_number<std::uint64_t>(1);
  }
  expect_corrupt(GgufBuilder().raw("deep", kArray, array).file(), {"deep", "deeper than"});
}

TEST(GgufFileTest, RefusesRepeatedAndOddNames) {
  expect_corrupt(small().integer("flag", 1).file(), {"'flag'", "twice"});
  expect_corrupt(small().tensor("one", {1}, kF32, "1234").file(), {"'one'", "twice"});
  expect_corrupt(small().tensor("", {1}, kF32, "1234").file(), {"printable name"});
  expect_corrupt(small().tensor("a\nb", {1}, kF32, "1234").file(), {"printable name"});
  expect_corrupt(small().integer("\xff", 1).file(), {"printable name"});
  expect_corrupt(small().integer(std::string(70000, 'k'), 1).file(), {"at most 65535"});
}

TEST(GgufFileTest, RefusesShapesThatDoNotFit) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  expect_corrupt(small().tensor("x", {}, kF32, "").file(), {"0 dimensions"});
  expect_corrupt(small().tensor("x", {1, 1, 1, 1, 1}, kF32, "").file(), {"5 dimensions"});
  expect_corrupt(small().tensor("x", {4, 0}, kF32, "").file(), {"positive sizes"});
  expect_corrupt(small().tensor("x", {kHuge, kHuge}, kF32, "").file(), {"2^60"});
  expect_corrupt(small().tensor("x", {~std::uint64_t{0}}, kF32, "").file(), {"positive sizes"});
  expect_corrupt(small().tensor("x", {33}, kQ80, std::string(68, 0)).file(), {"multiple of 32"});
  expect_corrupt(small().tensor("x", {64}, kF32, std::string(32, 0)).file(), {"256 bytes"});
}

TEST(GgufFileTest, RefusesRangesOutsideOfTheFile) {
  const std::string four = "1234";
  expect_corrupt(small().tensor("x", {1}, kF32, four, 1 << 20).file(), {"'x'", "offset 1048576"});
  expect_corrupt(small().tensor("x", {1}, kF32, four, ~std::uint64_t{31}).file(), {"'x'"});
  expect_corrupt(small().tensor("x", {1}, kF32, four, 33).file(), {"multiple of 32"});
  expect_corrupt(small().tensor("x", {1}, kF32, four, 0).file(), {"'one'", "overlap"});
}

TEST(GgufFileTest, RefusesUnknownTypesByName) {
  const auto unsupported = [](std::uint32_t type, std::string_view name) {
    const std::string file = small().tensor("x", {256}, type, std::string(256, 0)).file();
    expect_error(ErrorCode::kUnsupported, {"'x'", name, "Q4_K"}, [&] { parse(file); });
  };
  unsupported(9, "Q8_1");
  unsupported(41, "Q1_0");
  unsupported(24, "I8");
  unsupported(1000, "type 1000");
}

TEST(GgufFileTest, RefusesValuesOfAnotherType) {
  const std::string file = small().file();
  const Header header = parse(file);
  const auto refused = [](std::string_view word, const std::function<void()>& body) {
    expect_error(ErrorCode::kCorruptData, {word}, body);
  };
  refused("an integer", [&] { (void)header.integer("general.architecture"); });
  refused("an integer", [&] { (void)header.integer("llama.rope.freq_base"); });
  refused("a single value", [&] { (void)header.integer("scores"); });
  refused("an array", [&] { (void)header.strings("flag"); });
  refused("strings", [&] { (void)header.strings("scores"); });
  refused("numbers", [&] { (void)header.numbers("names"); });
  refused("type bool", [&] { (void)header.boolean("llama.block_count"); });
  refused("type string", [&] { (void)header.string("flag"); });
}

// Every cut, and any byte changed: an error of ours or a header whose ranges lie in the file.
RC_GTEST_PROP(GgufFilePropertyTest, SurvivesAnyChange, ()) {
  std::string file = small().file();
  const auto changes = *rc::gen::inRange(0, 4);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, file.size());
    file[at] = *rc::gen::arbitrary<char>();
  }
  file.resize(*rc::gen::inRange<std::size_t>(0, file.size() + 1));
  try {
    for (const TensorEntry& entry : parse(file).tensors) {
      RC_ASSERT(entry.begin <= entry.end);
      RC_ASSERT(entry.end <= file.size());
    }
  } catch (const Error& error) {
    RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
  }
}

}  // namespace
}  // namespace saker::load::gguf
