// SPDX-License-Identifier: Apache-2.0
#include "tests/load/gguf/small_llama.h"

#include "saker/kernels/quantize/quantize_loops.h"

#include <utility>

namespace saker::load::gguf {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(i % 4093) / 64.0F;
  }
  return values;
}

std::string bytes_as(const std::vector<float>& values, DType dtype) {
  std::string bytes(values.size() * dtype_size(dtype), '\0');
  kernels::quantize_loops().narrow(
      values.data(), dtype, values.size(), reinterpret_cast<std::byte*>(bytes.data())
  );
  return bytes;
}

std::string f32(std::size_t count) {
  return bytes_as(numbers(count), DType::kFloat32);
}

testing::GgufBuilder metadata(const std::string& architecture, std::string_view left_out) {
  const auto key = [&](std::string_view name) { return architecture + "." + std::string(name); };
  testing::GgufBuilder builder;
  builder.string("general.architecture", architecture);
  const std::vector<std::pair<std::string_view, std::uint32_t>> sizes = {
      {"block_count", 1},
      {"embedding_length", kHidden},
      {"feed_forward_length", 32},
      {"context_length", 512},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
  };
  for (const auto& [name, size] : sizes) {
    if (name != left_out) {
      builder.integer(key(name), size);
    }
  }
  builder.number(key("attention.layer_norm_rms_epsilon"), 1e-5F)
      .number(key("rope.freq_base"), 500000.0F);
  return builder;
}

testing::GgufBuilder llama(
    std::uint32_t type,
    const std::function<std::string(std::size_t)>& make,
    std::string_view left_out
) {
  testing::GgufBuilder builder = metadata("llama", left_out);
  const auto add = [&](std::string_view name, std::uint64_t columns, std::uint64_t rows) {
    builder.tensor(name, {columns, rows}, type, make(columns * rows));
  };
  builder.tensor("output_norm.weight", {kHidden}, kF32, f32(kHidden));
  builder.tensor("blk.0.attn_norm.weight", {kHidden}, kF32, f32(kHidden));
  builder.tensor("blk.0.ffn_norm.weight", {kHidden}, kF32, f32(kHidden));
  add("token_embd.weight", kHidden, kVocabulary);
  add("blk.0.attn_q.weight", kHidden, 4 * kHeadDim);
  add("blk.0.attn_k.weight", kHidden, 2 * kHeadDim);
  add("blk.0.attn_v.weight", kHidden, 2 * kHeadDim);
  add("blk.0.attn_output.weight", 4 * kHeadDim, kHidden);
  add("blk.0.ffn_gate.weight", kHidden, 32);
  add("blk.0.ffn_up.weight", kHidden, 32);
  add("blk.0.ffn_down.weight", 32, kHidden);
  return builder;
}

std::string q4_blocks(std::size_t count) {
  std::string bytes(count / 32 * 18, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i % 18 == 1 ? 0x2c : i * 37 % 251);  // Scales about 0.06.
  }
  return bytes;
}

}  // namespace saker::load::gguf
