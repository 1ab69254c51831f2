// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/memory_need.h"

#include "saker/base/memory.h"
#include "saker/models/model.h"
#include "saker/models/token_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

// Tokens of a pass, and float arrays of the hidden size that are alive in it.
constexpr std::size_t kPassRows = 512;
constexpr std::size_t kArrays = 12;
// The program itself with its threads and libraries.
constexpr std::size_t kProgram = std::size_t{64} << 20;

}  // namespace

std::vector<CacheLayer> model_caches(const Json& config, const Headers& headers, int kv_bits) {
  // Rows are float32 if the token table is.
  const bool exact = std::ranges::any_of(headers, [](const auto& tensor) {
    return models::is_token_table_weight(tensor.first) && tensor.second.dtype == DType::kFloat32;
  });
  std::vector<CacheLayer> layers;
  for (auto& layer :
       models::layer_caches(config, {.kv_bits = kv_bits}, exact ? mx::float32 : mx::bfloat16)) {
    layers.push_back({
        .kind = std::move(layer.kind),
        .bits = layer.state_bytes > 0 ? kernels::kUnquantizedBits : kv_bits,
        .max_size = layer.max_size,
        .token_bytes = layer.row_bytes,
        .state_bytes = layer.state_bytes,
    });
  }
  return layers;
}

MemoryNeed memory_need(
    const models::TensorRoster& roster,
    const Headers& headers,
    const std::vector<CacheLayer>& caches,
    const ModelSummary& model
) {
  MemoryNeed need;
  for (const auto& [name, entry] : headers) {
    if (roster.has(models::roster_name(name))) {
      need.weight_bytes += entry.end - entry.begin;
    }
  }
  need.tokens = model.context_length > 0
                    ? std::min<std::int64_t>(kUsualTokens, model.context_length)
                    : kUsualTokens;
  for (const CacheLayer& layer : caches) {
    const auto rows = static_cast<std::size_t>(
        layer.max_size ? std::min<std::int64_t>(*layer.max_size, need.tokens) : need.tokens
    );
    need.token_bytes += layer.token_bytes;
    need.cache_bytes += layer.state_bytes + rows * layer.token_bytes;
  }
  need.work_bytes =
      kProgram + kPassRows * kArrays * sizeof(float) *
                     static_cast<std::size_t>(std::max<std::int64_t>(model.hidden_size, 1));
  need.usable_bytes = usable_memory_bytes();
  return need;
}

}  // namespace saker::load
