// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/safetensors.h"

#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/load/files/safetensors_writer.h"

#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::f32_tensor;
using testing::raw_bytes;
using testing::RawTensor;
using testing::safetensors_file;
using testing::TemporaryDir;

SafetensorsHeader parse(std::string_view file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "file");
}

void expect_corrupt(std::string_view file, const std::vector<std::string_view>& words) {
  expect_error(ErrorCode::kCorruptData, words, [&] { parse(file); });
}

// A header with one tensor of four float32 numbers but for what `fields` says.
std::string one_tensor(std::string_view fields) {
  return safetensors_file(fmt::format(R"({{"x":{{{}}}}})", fields), std::string(16, 'd'));
}

const std::vector<RawTensor>& sample_tensors() {
  static const std::vector<RawTensor> tensors = {
      f32_tensor("a.weight", {2, 3}, {1, 2, 3, 4, 5, 6}),
      {"b", "U32", {2}, raw_bytes<std::uint32_t>({7, 0xffffffff})},
      {"empty", "BF16", {0, 4}, ""},
      {"scalar", "I32", {}, raw_bytes<std::int32_t>({-9})},
      {"odd", "U8", {3}, "xyz"},
      {"half", "F16", {1}, std::string("\x00\x3c", 2)},  // Unaligned in the file.
  };
  return tensors;
}

// Minutes where each name is looked up in those before it.
TEST(Safetensors, ManyTensorsTakeTimeInProportion) {
  constexpr int kCount = 150'000;
  std::vector<PlannedTensor> planned;
  for (int i = 0; i < kCount; ++i) {
    planned.push_back({.name = fmt::format("t{}", i), .dtype = DType::kUInt8, .shape = {0}});
  }
  // Time of this process: others may have the machine.
  const std::clock_t start = std::clock();
  const std::string file = safetensors_prefix(planned, {{"format", "mlx"}});
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10);
  EXPECT_EQ(parse(file).entries.size(), planned.size());
}

TEST(Safetensors, GivesBackWhatWasWritten) {
  const TemporaryDir dir;
  const auto path = dir.write("x.safetensors", safetensors_file(sample_tensors(), {{"k", "v"}}));
  const TensorMap tensors = read_safetensors(path);
  ASSERT_EQ(tensors.size(), sample_tensors().size());
  for (const RawTensor& raw : sample_tensors()) {
    const Tensor& tensor = tensors.at(raw.name);
    EXPECT_EQ(dtype_name(tensor.dtype), raw.dtype);
    EXPECT_EQ(tensor.shape, raw.shape);
    ASSERT_EQ(tensor.nbytes(), raw.bytes.size());
    EXPECT_TRUE(std::equal(
        raw.bytes.begin(), raw.bytes.end(), reinterpret_cast<const char*>(tensor.data.get())
    ));
  }
  EXPECT_EQ(to_floats(tensors.at("a.weight")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(to_floats(tensors.at("half")), (std::vector<float>{1}));
  const SafetensorsHeader header = read_safetensors_header(path);
  EXPECT_EQ(header.metadata.at("k"), "v");
}

TEST(Safetensors, ReleasedBytesStayReadable) {
  const TemporaryDir dir;
  const std::vector<float> values(100'000, 2.5F);
  const auto path =
      dir.write("x.safetensors", safetensors_file({f32_tensor("x", {100'000}, values)}));
  const Tensor tensor = read_safetensors(path).at("x");  // Keeps the file mapped.
  EXPECT_EQ(to_floats(tensor), values);
  tensor.release();
  EXPECT_EQ(to_floats(tensor), values);
}

TEST(Safetensors, AcceptsAFileWithoutTensors) {
  EXPECT_TRUE(parse(safetensors_file("{}", "")).entries.empty());
  EXPECT_TRUE(parse(safetensors_file(R"({"__metadata__":{}}   )", "")).entries.empty());
  EXPECT_TRUE(parse(safetensors_file(R"({"__metadata__":null})", "")).metadata.empty());
}

RC_GTEST_PROP(
    Safetensors,
    GivesBackAnyTensors,
    (const std::map<std::uint16_t, std::vector<std::uint8_t>>& contents)
) {
  std::vector<RawTensor> tensors;
  tensors.reserve(contents.size());
  for (const auto& [number, bytes] : contents) {
    tensors.push_back(
        {fmt::format("layer.{}", number),
         "U8",
         {static_cast<std::int64_t>(bytes.size())},
         raw_bytes(bytes)}
    );
  }
  const std::string file = safetensors_file(tensors);
  const SafetensorsHeader header = parse(file);
  RC_ASSERT(header.entries.size() == tensors.size());
  for (const SafetensorsEntry& entry : header.entries) {
    const int number = std::stoi(entry.name.substr(6));
    const auto& bytes = contents.at(static_cast<std::uint16_t>(number));
    RC_ASSERT(file.substr(entry.begin, entry.end - entry.begin) == raw_bytes(bytes));
  }
}

TEST(Safetensors, RefusesAFileCutAnywhere) {
  const std::string file = safetensors_file(sample_tensors(), {{"k", "v"}});
  ASSERT_NO_THROW(parse(file));
  for (std::size_t size = 0; size < file.size(); ++size) {
    SCOPED_TRACE(size);
    expect_corrupt(std::string_view(file).substr(0, size), {"file: "});
  }
  expect_corrupt(file + "x", {"expected"});
}

// Whatever one changed byte does, it is a valid file or a clear error.
TEST(Safetensors, SurvivesEveryChangedByte) {
  const std::string file = safetensors_file(sample_tensors(), {{"k", "v"}});
  int refused = 0;
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ flip);
      try {
        parse(changed);
      } catch (const Error& error) {
        ++refused;
        ASSERT_EQ(error.code(), ErrorCode::kCorruptData) << error.what();
        ASSERT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Safetensors, RefusesLyingHeaderLengths) {
  const auto with_length = [](std::uint64_t length) {
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return file + "{}";
  };
  EXPECT_NO_THROW(parse(with_length(2)));
  for (const std::uint64_t length : {3ULL, 100'000'000ULL}) {
    expect_corrupt(with_length(length), {"ends inside the header"});
  }
  for (const std::uint64_t length : {100'000'001ULL, 1ULL << 62, ~0ULL, ~0ULL - 7}) {
    expect_corrupt(with_length(length), {fmt::to_string(length), "at most 100000000"});
  }
  expect_corrupt(with_length(0), {"begin with '{'"});
  expect_corrupt(with_length(1), {"header"});
}

TEST(Safetensors, RefusesHeadersThatAreNoObjectOfTensors) {
  for (const std::string_view header : {"[]", "null", "\"x\"", " {}", "7", "\xef\xbb\xbf{}"}) {
    expect_corrupt(safetensors_file(header, ""), {"begin with '{'"});
  }
  expect_corrupt(safetensors_file("{}x", ""), {"header", "byte"});
  expect_corrupt(safetensors_file(std::string("{}\0", 3), ""), {"header", "byte"});
  expect_corrupt(safetensors_file("{\"\xff\":{}}", ""), {"UTF-8"});
  expect_corrupt(safetensors_file(R"({"x":7})", ""), {"'x'", "is 7", "expected an object"});
  expect_corrupt(safetensors_file(R"({"__metadata__":7})", ""), {"__metadata__", "is 7"});
  expect_corrupt(safetensors_file(R"({"__metadata__":{"a":1}})", ""), {"'a' is 1", "a string"});
  std::string deep = "{\"x\":";
  for (int i = 0; i < 100'000; ++i) {
    deep += "[";
  }
  expect_corrupt(safetensors_file(deep, ""), {"nested deeper"});
}

TEST(Safetensors, RefusesBadNames) {
  const std::string entry = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  for (const std::string_view name : {R"(a\u0000b)", R"(a\nb)", R"(\u007f)", R"(\u001b[31m)"}) {
    expect_corrupt(
        safetensors_file(fmt::format(R"({{"{}":{}}})", name, entry), ""), {"control character"}
    );
  }
  expect_corrupt(
      safetensors_file(fmt::format(R"({{"a":{0},"b":{0},"a":{0}}})", entry), ""), {"'a'", "twice"}
  );
  expect_corrupt(
      safetensors_file(R"({"x":{"dtype":"U8","dtype":"I8","shape":[0],"data_offsets":[0,0]}})", ""),
      {"'dtype'", "twice"}
  );
}

TEST(Safetensors, RefusesBadFields) {
  EXPECT_NO_THROW(parse(one_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])")));
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {R"("shape":[4],"data_offsets":[0,16])", "'dtype' is missing"},
      {R"("dtype":"F32","data_offsets":[0,16])", "'shape' is missing"},
      {R"("dtype":"F32","shape":[4])", "'data_offsets' is missing"},
      {R"("dtype":"f32","shape":[4],"data_offsets":[0,16])", "'dtype' is 'f32'"},
      {R"("dtype":32,"shape":[4],"data_offsets":[0,16])", "'dtype' is 32"},
      {R"("dtype":null,"shape":[4],"data_offsets":[0,16])", "'dtype' is null"},
      {R"("dtype":"F32","shape":4,"data_offsets":[0,16])", "'shape' is 4"},
      {R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])", "'shape' holds -4"},
      {R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])", "'shape' holds 4.0"},
      {R"("dtype":"F32","shape":["4"],"data_offsets":[0,16])", "'shape' holds '4'"},
      {R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16])", "too large"},
      {R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,16])", "'shape' holds"},
      {R"("dtype":"F32","shape":[4],"data_offsets":16)", "'data_offsets' is 16"},
      {R"("dtype":"F32","shape":[4],"data_offsets":[16])", "array of 1"},
      {R"("dtype":"F32","shape":[4],"data_offsets":[0,16,32])", "array of 3"},
      {R"("dtype":"F32","shape":[4],"data_offsets":[-1,15])", "'data_offsets' holds -1"},
      {R"("dtype":"F32","shape":[4],"data_offsets":[16,0])", "[16, 0]"},
      {R"("dtype":"F32","shape":[4],"data_offsets":[0,17])", "[0, 17]"},
      {R"("dtype":"F32","shape":[4],"data_offsets":[18446744073709551600,18446744073709551615])",
       "18446744073709551615"},
      {R"("dtype":"F32","shape":[3],"data_offsets":[0,16])", "16 bytes of data, expected 12"},
      {R"("dtype":"BF16","shape":[4],"data_offsets":[0,16])", "expected 8 for BF16 [4]"},
      {R"("dtype":"F4","shape":[31],"data_offsets":[0,16])", "F4"},
  };
  for (const auto& [fields, word] : cases) {
    SCOPED_TRACE(fields);
    expect_corrupt(one_tensor(fields), {"file: tensor 'x'", word});
  }
}

TEST(Safetensors, RefusesShapesWhoseProductOverflows) {
  // 2^64 elements would wrap to none, 2^62 of four bytes to no byte.
  for (const std::string_view shape :
       {"[4294967296,4294967296]",
        "[4611686018427387904]",
        "[9223372036854775807,9223372036854775807]",
        "[3037000500,3037000500]",
        "[9223372036854775807,2,0]"}) {
    SCOPED_TRACE(shape);
    expect_corrupt(
        safetensors_file(
            fmt::format(R"({{"x":{{"dtype":"F32","shape":{},"data_offsets":[0,0]}}}})", shape), ""
        ),
        {"too many elements"}
    );
  }
  std::string ones = "1";
  for (std::size_t i = 0; i < kMaxTensorRank; ++i) {
    ones += ",1";
  }
  expect_corrupt(
      one_tensor(fmt::format(R"("dtype":"F32","shape":[{}],"data_offsets":[0,4])", ones)),
      {"33 dimensions"}
  );
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
  const auto two = [](int begin, int end) {
    return safetensors_file(
        fmt::format(
            R"({{"a":{{"dtype":"U8","shape":[8],"data_offsets":[0,8]}},)"
            R"("b":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}}})",
            end - begin,
            begin,
            end
        ),
        std::string(16, 'd')
    );
  };
  EXPECT_NO_THROW(parse(two(8, 16)));
  expect_corrupt(two(4, 16), {"'b'", "inside the tensor that ends at 8"});
  expect_corrupt(two(0, 8), {"inside the tensor"});
  expect_corrupt(two(9, 16), {"'b'", "leaving a hole after 8"});
  expect_corrupt(two(8, 15), {"16 bytes of data, expected 15"});
}

TEST(Safetensors, NamesDtypesItCannotHold) {
  const TemporaryDir dir;
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::size_t>>{
           {"F8_E5M2", 2}, {"F8_E4M3FNUZ", 2}, {"F4", 1}, {"C64", 16}
       }) {
    const auto path =
        dir.write("x.safetensors", safetensors_file({{"w", name, {2}, std::string(bytes, 'b')}}));
    const SafetensorsHeader header = read_safetensors_header(path);
    EXPECT_EQ(header.entries.at(0).dtype_name, name);
    expect_error(ErrorCode::kUnsupported, {"x.safetensors", "'w'", name}, [&] {
      read_safetensors(path);
    });
  }
}

// Their elements have any size, and only who needs them is stopped.
TEST(Safetensors, DtypesOfALaterFormatAreTold) {
  const TemporaryDir dir;
  const auto path = dir.write("x.safetensors", safetensors_file({{"w", "NEW_F3", {2}, "abcde"}}));
  EXPECT_EQ(read_safetensors_header(path).entries.at(0).dtype, std::nullopt);
  expect_error(ErrorCode::kUnsupported, {"'w'", "of a later format"}, [&] {
    read_safetensors(path);
  });
  expect_corrupt(safetensors_file({{"w", "new", {2}, "ab"}}), {"'dtype' is 'new'"});
  expect_corrupt(safetensors_file({{"w", "A234567890123456_", {2}, "ab"}}), {"'dtype' is"});
}

TEST(Safetensors, ReadsPowersOfTwoAsTheirBytes) {
  const TemporaryDir dir;
  const auto path = dir.write("x.safetensors", safetensors_file({{"w", "F8_E8M0", {2}, "ab"}}));
  EXPECT_EQ(read_safetensors_header(path).entries.at(0).dtype_name, "F8_E8M0");
  const Tensor tensor = read_safetensors(path).at("w");
  EXPECT_EQ(tensor.dtype, DType::kUInt8);
  EXPECT_EQ(tensor.data.get()[1], std::byte{'b'});
}

TEST(Safetensors, NamesTheFile) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kCorruptData, {"empty.safetensors", "0 bytes"}, [&] {
    read_safetensors(dir.write("empty.safetensors", ""));
  });
  expect_error(ErrorCode::kNotFound, {"none.safetensors"}, [&] {
    read_safetensors(dir.path() / "none.safetensors");
  });
}

RC_GTEST_PROP(Safetensors, AnyHeaderGivesTensorsOrAnError, (const std::string& header)) {
  try {
    parse(safetensors_file("{" + header, header));
  } catch (const Error& error) {
    RC_ASSERT(error.code() == ErrorCode::kCorruptData);
  }
}

}  // namespace
}  // namespace saker::load
