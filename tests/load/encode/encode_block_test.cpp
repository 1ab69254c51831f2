// SPDX-License-Identifier: Apache-2.0
#include "saker/load/encode/encode_block.h"

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

using enum TensorType;

const std::vector<TensorType> kEncodedTypes = {
    kFloat16,
    kBFloat16,
    kQ80,
    kQ40,
    kQ41,
    kQ50,
    kQ51,
    kQ2K,
    kQ3K,
    kQ4K,
    kQ5K,
    kQ6K,
    kIq4Nl,
    kIq4Xs,
    kMxfp4,
    kTq10,
    kTq20,
};

std::size_t row_bytes(TensorType type, std::size_t columns) {
  const TypeFacts& facts = facts_of(type);
  return columns / static_cast<std::size_t>(facts.block) * facts.block_bytes;
}

std::vector<std::byte> encoded(
    TensorType type, std::span<const float> row, std::span<const float> importance = {}
) {
  std::vector<std::byte> bytes(row_bytes(type, row.size()));
  encode_row(type, row, importance, bytes.data());
  return bytes;
}

std::vector<float> decoded(
    TensorType type, std::span<const float> row, std::span<const float> importance = {}
) {
  std::vector<float> values(row.size());
  to_floats(type, encoded(type, row, importance).data(), row.size(), values.data());
  return values;
}

// A row of about normal numbers.
std::vector<float> bell_row(std::size_t columns) {
  std::vector<float> row(columns);
  std::uint32_t state = 1;
  for (float& value : row) {
    for (int i = 0; i < 8; ++i) {
      state = state * 1664525U + 1013904223U;
      value += static_cast<float>(state >> 8U) * 0x1p-24F - 0.5F;
    }
  }
  return row;
}

// The root of the weighted squares of errors over that of the values.
double relative_error(
    std::span<const float> values, std::span<const float> row, std::span<const float> importance
) {
  double errors = 0.0;
  double squares = 0.0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    errors += importance[i] * std::pow(static_cast<double>(values[i]) - row[i], 2.0);
    squares += importance[i] * std::pow(static_cast<double>(row[i]), 2.0);
  }
  return std::sqrt(errors / squares);
}

TEST(EncodeBlockTest, BlocksHaveTheBytesOfGgml) {
  const auto path =
      std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/gguf/encoded.safetensors";
  const TensorMap tensors = read_safetensors(path);
  const std::vector<float> rows = to_floats(tensors.at("rows"));
  const std::vector<float> importance = to_floats(tensors.at("importance"));
  const std::size_t columns = importance.size();
  int compared = 0;
  for (const TensorType type : kEncodedTypes) {
    for (const char* variant : {".plain", ".weighted"}) {
      const std::string name = std::string(facts_of(type).name) + variant;
      const auto golden = tensors.find(name);
      if (golden == tensors.end()) {
        continue;
      }
      ++compared;
      const bool weighted = name.ends_with(".weighted");
      const auto expected = golden->second.bytes();
      const std::size_t bytes = row_bytes(type, columns);
      // ggml leaves MXFP4's exponent undefined in the last row.
      const std::size_t count = rows.size() / columns - (type == kMxfp4 ? 1 : 0);
      for (std::size_t r = 0; r < count; ++r) {
        const auto row = std::span(rows).subspan(r * columns, columns);
        const auto result =
            encoded(type, row, weighted ? std::span<const float>(importance) : std::span<float>());
        EXPECT_TRUE(std::ranges::equal(result, expected.subspan(r * bytes, bytes)))
            << name << " row " << r;
      }
    }
  }
  EXPECT_EQ(compared, 28);
}

TEST(EncodeBlockTest, WeightsAreNearTheirBlocks) {
  struct Expected {
    TensorType type;
    double error;
  };

  const std::vector<float> row = bell_row(1024);
  const std::vector<float> ones(row.size(), 1.0F);
  for (const auto& [type, error] : std::vector<Expected>{
           {kFloat32, 0.0},
           {kFloat16, 0.0003},
           {kBFloat16, 0.003},
           {kQ80, 0.006},
           {kQ40, 0.09},
           {kQ41, 0.09},
           {kQ50, 0.045},
           {kQ51, 0.045},
           {kQ2K, 0.32},
           {kQ3K, 0.17},
           {kQ4K, 0.08},
           {kQ5K, 0.04},
           {kQ6K, 0.02},
           {kIq4Nl, 0.08},
           {kIq4Xs, 0.08},
           {kMxfp4, 0.13},
       }) {
    const double found = relative_error(decoded(type, row), row, ones);
    EXPECT_LE(found, error) << facts_of(type).name;
    EXPECT_GE(found, error / 2) << facts_of(type).name;
  }
}

TEST(EncodeBlockTest, ImportantWeightsAreNearer) {
  const std::vector<float> row = bell_row(1024);
  std::vector<float> importance(row.size(), 0.01F);
  for (std::size_t i = 0; i < row.size(); i += 5) {
    importance[i] = 10.0F;
  }
  for (const TensorType type :
       {kQ40, kQ41, kQ50, kQ51, kQ2K, kQ3K, kQ4K, kQ5K, kQ6K, kIq4Nl, kIq4Xs}) {
    const double plain = relative_error(decoded(type, row), row, importance);
    const double weighted = relative_error(decoded(type, row, importance), row, importance);
    EXPECT_LT(weighted, plain * 0.95) << facts_of(type).name;
  }
}

TEST(EncodeBlockTest, TernaryBlocksHoldThreeValues) {
  std::vector<float> row = bell_row(512);
  for (float& value : row) {
    value = value < -0.5F ? -0.375F : value < 0.5F ? 0.0F : 0.375F;
  }
  EXPECT_EQ(decoded(kTq10, row), row);
  EXPECT_EQ(decoded(kTq20, row), row);
}

TEST(EncodeBlockTest, TinyBlocksOfMxfp4HaveTheSmallestExponent) {
  std::vector<float> row(32, 0.0F);
  row[0] = 0x1p-126F;
  row[1] = -0x1p-127F;
  EXPECT_EQ(decoded(kMxfp4, row), row);
}

TEST(EncodeBlockTest, NoValueWritesBeyondTheRow) {
  constexpr std::byte kGuard{0xA5};
  std::vector<float> row = bell_row(256);
  const float infinity = std::numeric_limits<float>::infinity();
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, 3e38F, 1e-45F};
  for (std::size_t i = 0; i < row.size(); i += 3) {
    row[i] = odd[i % 5];
  }
  for (const TensorType type : kEncodedTypes) {
    for (const bool weighted : {false, true}) {
      const std::size_t bytes = row_bytes(type, row.size());
      std::vector<std::byte> to(bytes + 16, kGuard);
      encode_row(type, row, weighted ? std::span<const float>(row) : std::span<float>(), to.data());
      EXPECT_EQ(std::count(to.begin() + static_cast<std::ptrdiff_t>(bytes), to.end(), kGuard), 16);
    }
  }
}

TEST(EncodeBlockTest, TypesOfGridsHaveNoEncoder) {
  EXPECT_TRUE(can_encode(kFloat32));
  EXPECT_TRUE(std::ranges::all_of(kEncodedTypes, can_encode));
  for (const TensorType type : {kIq1S, kIq1M, kIq2Xxs, kIq2Xs, kIq2S, kIq3Xxs, kIq3S, kNvfp4}) {
    EXPECT_FALSE(can_encode(type)) << facts_of(type).name;
  }
}

}  // namespace
}  // namespace saker::load::gguf
