// SPDX-License-Identifier: Apache-2.0
// Any texts as the folder of a draft or model: its config.json, and the names, types and shapes of
// its tensors, whose elements are zeros. The first byte chooses the model that the draft is for. A
// typed error, or a draft or model that was built.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/load/draft.h"

#include "tests/fuzz/input.h"
#include "tests/support/temporary_dir.h"
#include <spdlog/spdlog.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace {

using saker::Json;
using saker::fuzz::expect;

// As in tests/golden: for DFlash drafts and EAGLE-3 heads, assistants, and MTP heads.
const saker::models::ModelInfo& target_of(unsigned byte) {
  static const std::array<saker::models::ModelInfo, 3> targets{{
      {.model_type = "qwen3", .layer_count = 4, .hidden_size = 32, .vocab_size = 96},
      {.model_type = "gemma4_text",
       .layer_count = 6,
       .hidden_size = 36,
       .vocab_size = 96,
       .last_sliding = {.layer = 2, .kv_heads = 2, .head_dim = 8},
       .last_full = {.layer = 3, .kv_heads = 1, .head_dim = 16}},
      {.model_type = "qwen3_5", .layer_count = 4, .hidden_size = 32, .vocab_size = 96},
  }};
  return targets[byte % targets.size()];
}

// Bytes of all elements of a tensor; none where that is no matter for such a file.
std::optional<std::size_t> bytes_of(const Json& tensor) {
  static const std::map<std::string, std::size_t, std::less<>> kBytes{
      {"BF16", 2},
      {"F16", 2},
      {"F32", 4},
      {"I32", 4},
      {"U32", 4},
      {"U8", 1},
      {"BOOL", 1},
      {"I64", 8}
  };
  constexpr std::size_t kMax = std::size_t{1} << 20;
  if (!tensor.is_object() || !tensor.contains("dtype") || !tensor.contains("shape") ||
      !tensor["dtype"].is_string() || !tensor["shape"].is_array()) {
    return std::nullopt;
  }
  const auto found = kBytes.find(tensor["dtype"].get_ref<const std::string&>());
  std::size_t bytes = found == kBytes.end() ? 4 : found->second;
  for (const Json& size : tensor["shape"]) {
    if (!size.is_number_unsigned() || size.get<std::size_t>() > kMax) {
      return std::nullopt;
    }
    bytes *= size.get<std::size_t>();
    if (bytes > kMax) {
      return std::nullopt;
    }
  }
  return bytes;
}

// A safetensors file of these tensors, at most 4 MiB.
std::string weights_of(std::string_view text) {
  Json header = Json::object();
  std::size_t end = 0;
  try {
    const Json tensors = saker::parse_json(text, "tensors");
    if (tensors.is_object()) {
      for (const auto& [name, tensor] : tensors.items()) {
        const auto bytes = bytes_of(tensor);
        if (!bytes || end + *bytes > (std::size_t{4} << 20)) {
          continue;
        }
        header[name] = {
            {"dtype", tensor["dtype"]},
            {"shape", tensor["shape"]},
            {"data_offsets", {end, end + *bytes}}
        };
        end += *bytes;
      }
    }
  } catch (const saker::Error&) {
    // Then there are none.
  }
  const std::string written = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::uint64_t length = written.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + written + std::string(end, '\0');
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  spdlog::set_level(spdlog::level::off);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const saker::testing::TemporaryDir dir;
  saker::fuzz::Input input(data, size);
  const auto& target = target_of(input.byte());
  dir.write("config.json", input.text());
  dir.write("model.safetensors", weights_of(input.text()));
  try {
    const auto draft = saker::load::load_draft(dir.path(), target);
    const int kinds = (draft.model ? 1 : 0) + (draft.dflash ? 1 : 0) + (draft.eagle3 ? 1 : 0) +
                      (draft.mtp ? 1 : 0) + (draft.assistant ? 1 : 0);
    expect(kinds == 1);
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
