// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/npz.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include "tests/support/zip_builder.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

std::filesystem::path golden() {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/npz";
}

std::string npy(std::string_view header, std::size_t data_bytes = 0) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xffU);
  file += static_cast<char>(header.size() >> 8U);
  file += header;
  return file + std::string(data_bytes, '\0');
}

Tensor parse(std::string_view file) {
  const auto* data = reinterpret_cast<const std::byte*>(file.data());
  return parse_npy(std::make_shared<const std::vector<std::byte>>(data, data + file.size()), "x");
}

// By tools/make_npz_goldens.py.
TEST(Npz, ReadsWhatNumpyAndMlxWrite) {
  const TensorMap expected = read_safetensors(golden() / "arrays.safetensors");
  for (const auto* name : {"numpy.npz", "compressed.npz", "fortran.npz", "mlx.npz"}) {
    const TensorMap read = read_npz(golden() / name);
    EXPECT_GE(read.size(), 6U) << name;
    for (const auto& [key, tensor] : read) {
      const Tensor& wanted = expected.at(key);
      EXPECT_EQ(tensor.dtype, wanted.dtype) << name << " " << key;
      EXPECT_EQ(tensor.shape, wanted.shape) << name << " " << key;
      EXPECT_TRUE(std::ranges::equal(tensor.bytes(), wanted.bytes())) << name << " " << key;
    }
  }
}

TEST(Npz, RefusesWhatHoldsNoNumbers) {
  const auto refuse = [](const char* name, std::string_view word) {
    expect_error(ErrorCode::kUnsupported, {name, word}, [&] { read_npz(golden() / name); });
  };
  refuse("pickled.npz", "pickled");
  refuse("records.npz", "records");
  refuse("big_endian.npz", "'>f4'");
  refuse("texts.npz", "'<U1'");
}

TEST(Npz, RefusesEntriesOfOtherKinds) {
  const TemporaryDir dir;
  const auto path = dir.write("a.npz", testing::zip_file({{"a.txt", "abc"}}));
  expect_error(ErrorCode::kCorruptData, {"'a.txt'", "no array"}, [&] { read_npz(path); });
}

TEST(Npy, RefusesBrokenHeaders) {
  const auto refuse = [](std::string_view file, std::string_view word) {
    expect_error(ErrorCode::kCorruptData, {"x", word}, [&] { parse(file); });
  };
  refuse("", "no array");
  refuse("\x93NUMPY", "no array");
  refuse(std::string("\x93NUMPY\x09\x00\x00\x00\x00\x00\x00\x00", 14), "no array");
  refuse(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), "header of");
  for (const auto* header :
       {"",
        "{",
        "{}",
        "{'descr': '<f4'}",
        "{'descr': '<f4', 'fortran_order': Yes, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x"}) {
    refuse(npy(header, 4), "header");
  }
}

TEST(Npy, RefusesShapesThatTheBytesAreNot) {
  const auto file = [](std::string_view shape, std::size_t bytes) {
    return npy(
        "{'descr': '<f4', 'fortran_order': True, 'shape': " + std::string(shape) + "}", bytes
    );
  };
  EXPECT_EQ(parse(file("(2, 3)", 24)).shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(parse(file("(0, 9223372036854775807)", 0)).nbytes(), 0U);
  for (const auto* shape : {"(2, 3)", "(4611686018427387904, 4)", "(9223372036854775807,)"}) {
    expect_error(ErrorCode::kCorruptData, {"shape"}, [&] { parse(file(shape, 20)); });
  }
  expect_error(ErrorCode::kCorruptData, {"shape"}, [&] { parse(file("(1,)", 8)); });
}

}  // namespace
}  // namespace saker::load
