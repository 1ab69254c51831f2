// SPDX-License-Identifier: Apache-2.0
#include "saker/models/embedding_config.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/ranges.h>

#include <array>

namespace saker::models {
namespace {

// Real checkpoints have two.
constexpr std::size_t kMaxDense = 16;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

DenseActivation read_activation(const Json& value) {
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  require(
      name == "identity" || name == "tanh",
      ErrorCode::kCorruptData,
      "[config] {}.dense has {}, expected identity or tanh",
      kTextEmbedding,
      value.is_string() ? quote(name) : value.type_name()
  );
  return name == "tanh" ? DenseActivation::kTanh : DenseActivation::kIdentity;
}

}  // namespace

EmbeddingConfig read_embedding_config(const Json& config, const EmbeddingConfig& fallback) {
  if (!json_has(config, kTextEmbedding)) {
    return fallback;
  }
  const Json& section = *config.find(kTextEmbedding);
  require(
      section.is_object(),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an object",
      kTextEmbedding,
      section.type_name()
  );
  EmbeddingConfig result = fallback;
  result.is_declared = true;
  result.problem = json_string(section, "problem", "");
  const std::string name =
      json_string(section, "pooling", std::string(pooling_name(fallback.pooling)));
  const auto pooling = find_pooling(name);
  require(
      pooling.has_value(),
      ErrorCode::kCorruptData,
      "[config] {}.pooling is {}, expected one of {}",
      kTextEmbedding,
      quote(name),
      fmt::join(pooling_names(), ", ")
  );
  result.pooling = *pooling;
  result.normalize = json_bool(section, "normalize", fallback.normalize);
  if (json_has(section, "max_tokens")) {
    result.max_tokens = json_int_in(section, "max_tokens", 1, kMaxTokens);
  }
  if (const auto dense = section.find("dense"); dense != section.end()) {
    require(
        dense->is_array() && dense->size() <= kMaxDense,
        ErrorCode::kCorruptData,
        "[config] {}.dense is {}, expected a list of at most {}",
        kTextEmbedding,
        dense->is_array() ? "longer" : dense->type_name(),
        kMaxDense
    );
    for (const Json& activation : *dense) {
      result.dense.push_back(read_activation(activation));
    }
  }
  return result;
}

}  // namespace saker::models
