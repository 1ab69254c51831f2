// SPDX-License-Identifier: Apache-2.0
#pragma once

// GGUF files of a Llama of one layer.

#include "saker/base/tensor.h"

#include "tests/support/gguf_builder.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

inline constexpr std::uint64_t kHidden = 64;
inline constexpr std::uint64_t kHeadDim = 16;
inline constexpr std::uint64_t kVocabulary = 96;
inline constexpr std::uint32_t kF32 = 0;
inline constexpr std::uint32_t kF16 = 1;
inline constexpr std::uint32_t kQ40 = 2;
inline constexpr std::uint32_t kIq4Nl = 20;
inline constexpr std::uint32_t kBF16 = 30;
inline constexpr std::uint32_t kMxfp4 = 39;

// A tensor of distinct numbers, in the file's order.
std::vector<float> numbers(std::size_t count);
std::string bytes_as(const std::vector<float>& values, DType dtype);
std::string f32(std::size_t count);
// Blocks of four bits with a float16 before them, such as Q4_0's.
std::string q4_blocks(std::size_t count);

// Metadata of a model with 4 heads, 2 of them for keys and values, and one layer; without a key.
testing::GgufBuilder metadata(const std::string& architecture, std::string_view left_out = "");

// With all tensors of a layer of Llama, matrices of this type.
testing::GgufBuilder llama(
    std::uint32_t type = kF32,
    const std::function<std::string(std::size_t)>& make = f32,
    std::string_view left_out = ""
);

}  // namespace saker::load::gguf
