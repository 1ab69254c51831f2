// SPDX-License-Identifier: Apache-2.0
// Conversion of other programs' models: rows made as they are needed give what a folder that was
// written first gives.
#include "saker/load/importers/placeholder_tensors.h"

#include "saker/load/convert/convert_model.h"
#include "saker/load/convert/quantization_plan.h"
#include "saker/load/convert/write_imported.h"
#include "saker/load/sources/open_imported.h"

#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::importers {
namespace {

namespace fs = std::filesystem;

using saker::testing::raw_bytes;
using saker::testing::RawTensor;
using saker::testing::TemporaryDir;

fs::path golden() {
  return fs::path(SAKER_SOURCE_DIR) / "tests/golden/quantized";
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

std::vector<ConvertOptions> all_options(bool quantized) {
  std::vector<ConvertOptions> all(2);
  all[1].dtype = DType::kFloat32;
  ConvertOptions& last = all.emplace_back();
  if (quantized) {
    last.dequantize = true;
  } else {
    last.quantize.emplace().format = quantized_format("affine", 4, 32);
  }
  return all;
}

void expect_the_same(const fs::path& source) {
  const TemporaryDir dir;
  const auto model = open_imported(source).value();
  write_imported(model, dir.path() / "plain", {});
  int number = 0;
  for (ConvertOptions options : all_options(model.config.contains("quantization"))) {
    const fs::path expected = dir.path() / ("expected" + std::to_string(number));
    const fs::path got = dir.path() / "out" / std::to_string(number++);
    fs::create_directories(got.parent_path());
    convert_model(dir.path() / "plain", expected, options);
    options.progress = [&](std::int64_t done, std::int64_t total) {
      EXPECT_LE(done, total);
      // Nothing but the result is on its way.
      EXPECT_EQ(std::distance(fs::directory_iterator(got.parent_path()), {}), number);
    };
    convert_model(source, got, options);
    EXPECT_EQ(contents(got), contents(expected)) << source << ' ' << number;
  }
}

TEST(PlaceholderTensors, GiveWhatAWrittenFolderGives) {
  for (const char* name :
       {"awq", "bitnet", "fp8", "fp8_powers", "gptq", "int8", "modelopt", "mxfp4", "nvfp4", "packed"
       }) {
    SCOPED_TRACE(name);
    expect_the_same(golden() / name);
  }
}

// Words that are nowhere the same.
std::vector<std::uint32_t> words(std::size_t count) {
  std::vector<std::uint32_t> result(count);
  std::uint32_t state = 1;
  for (std::uint32_t& word : result) {
    state = state * 1664525U + 1013904223U;
    word = state ^ state >> 15;
  }
  return result;
}

std::string bytes_of(std::size_t count, std::uint8_t mask) {
  std::string bytes = raw_bytes(words((count + 3) / 4));
  bytes.resize(count);
  std::ranges::transform(bytes, bytes.begin(), [&](char c) {
    return static_cast<char>(static_cast<std::uint8_t>(c) & mask);
  });
  return bytes;
}

std::string config(std::string_view section) {
  return R"({"model_type":"llama","hidden_size":1024,"intermediate_size":64,"num_hidden_layers":1,)"
         R"("num_attention_heads":4,"vocab_size":2504,"rms_norm_eps":1e-6,"quantization_config":)" +
         std::string(section) + "}";
}

// Several slices of each tensor, of two threads: 2504 rows are no whole number of slices.
TEST(PlaceholderTensors, ManySlices) {
  constexpr std::int64_t kRows = 2504;
  constexpr std::int64_t kColumns = 1024;
  constexpr std::size_t kCount = kRows * kColumns;
  const TemporaryDir dir;
  dir.write("fp8/config.json", config(R"({"quant_method":"fp8"})"));
  dir.write(
      "fp8/model.safetensors",
      saker::testing::safetensors_file(std::vector<RawTensor>{
          {"lm_head.weight", "F8_E4M3", {kRows, kColumns}, bytes_of(kCount, 0xbf)},
          {"lm_head.weight_scale", "F32", {1}, raw_bytes(std::vector{0.01F})},
          {"model.embed_tokens.weight", "F16", {kRows, kColumns}, bytes_of(2 * kCount, 0xbf)},
      })
  );
  expect_the_same(dir.path() / "fp8");
  dir.write("gptq/config.json", config(R"({"quant_method":"gptq","bits":4})"));
  std::vector<float> scales(kRows * kColumns / 32);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    scales[i] = 0.001F * static_cast<float>(i % 977 + 1);
  }
  dir.write(
      "gptq/model.safetensors",
      saker::testing::safetensors_file(std::vector<RawTensor>{
          {"lm_head.qweight", "I32", {kColumns / 8, kRows}, bytes_of(kCount / 2, 0xff)},
          {"lm_head.qzeros", "I32", {kColumns / 32, kRows / 8}, bytes_of(kCount / 64, 0xff)},
          {"lm_head.scales", "F32", {kColumns / 32, kRows}, raw_bytes(scales)},
          {"model.embed_tokens.weight", "F16", {kRows, kColumns}, bytes_of(2 * kCount, 0xbf)},
      })
  );
  expect_the_same(dir.path() / "gptq");
}

}  // namespace
}  // namespace saker::load::importers
