// SPDX-License-Identifier: Apache-2.0
// Scores and vectors.
#include "saker/base/error.h"
#include "saker/capi/json_fields.h"
#include "saker/capi/model.h"
#include "saker/capi/status.h"
#include "saker/engine/embedding.h"
#include "saker/engine/options/apply_options.h"
#include "saker/engine/records/result_json.h"
#include "saker/engine/records/score_record.h"

#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct SakerVectors {
  std::vector<float> values = {};
  std::size_t count = 0;
  std::size_t dimensions = 0;
  std::int64_t tokens = 0;
};

namespace saker::capi {
namespace {

using engine::OptionKind;

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

std::vector<engine::View> views(const Model& model, JsonFields& fields) {
  const auto keys = fields.take("views", OptionKind::kTexts);
  if (!keys) {
    return {model.view({})};
  }
  std::vector<engine::View> list;
  for (const Json& key : keys->is_array() ? *keys : Json::array({*keys})) {
    list.push_back(model.view(key.get<std::string>()));
  }
  return list;
}

Json score(const Model& model, JsonFields fields) {
  engine::ScoreRequest options;
  options.views = views(model, fields);
  options.kv_bits = static_cast<int>(fields.take_integer("kv_bits", 4, 32).value_or(16));
  options.top_k = static_cast<int>(fields.take_integer("top_k", 0, kMostInt).value_or(0));
  options.stride = static_cast<int>(fields.take_integer("stride", 0, kMostInt).value_or(0));
  return engine::to_json(model.engine().score(engine::make_score_request(fields.rest(), options)));
}

engine::EmbedInput input_of(const Json& input) {
  if (input.is_string()) {
    return input.get<std::string>();
  }
  require(
      input.is_array(),
      ErrorCode::kInvalidArgument,
      "inputs: got {}, expected texts and lists of token ids",
      input.type_name()
  );
  engine::Request holder;
  engine::apply_record({{"tokens", input}}, holder);
  return std::move(*holder.prompt.tokens);
}

engine::EmbedRequest embed_request(const Model& model, JsonFields fields) {
  engine::EmbedRequest request;
  const auto inputs = fields.take("inputs", OptionKind::kList);
  require(inputs.has_value(), ErrorCode::kInvalidArgument, "expected \"inputs\" in the request");
  for (const Json& input : *inputs) {
    request.inputs.push_back(input_of(input));
  }
  if (const auto name = fields.take_text("pooling")) {
    request.pooling = models::find_pooling(*name);
    require(
        request.pooling.has_value(),
        ErrorCode::kInvalidArgument,
        "pooling: got {:?}, expected one of {}",
        *name,
        fmt::join(models::pooling_names(), ", ")
    );
  }
  request.normalize = fields.take_flag("normalize");
  request.dimensions = static_cast<int>(fields.take_integer("dimensions", 0, kMostInt).value_or(0));
  request.prompt_name = fields.take_text("prompt_name").value_or("");
  request.prompt = fields.take_text("prompt");
  request.truncate = fields.take_flag("truncate").value_or(false);
  request.view = model.view(fields.take_text("view"));
  fields.require_all_taken();
  return request;
}

std::unique_ptr<SakerVectors> embed(const Model& model, JsonFields fields) {
  const engine::EmbedResult result = model.engine().embed(embed_request(model, std::move(fields)));
  auto vectors = std::make_unique<SakerVectors>();
  vectors->count = result.embeddings.size();
  vectors->dimensions = result.embeddings.empty() ? 0 : result.embeddings.front().size();
  vectors->tokens = result.tokens;
  vectors->values.reserve(vectors->count * vectors->dimensions);
  for (const std::vector<float>& vector : result.embeddings) {
    vectors->values.insert(vectors->values.end(), vector.begin(), vector.end());
  }
  return vectors;
}

}  // namespace
}  // namespace saker::capi

namespace capi = saker::capi;

SakerStatus saker_model_score(
    SakerModel* model, const char* request, SakerText** json, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerText*& place = capi::cleared(json);
    return capi::give(
        capi::score(*capi::required(model, "model").model, {request, "request"}), place
    );
  });
}

SakerStatus saker_model_embed(
    SakerModel* model, const char* request, SakerVectors** out, SakerText** message
) {
  return capi::guarded(message, [&] {
    SakerVectors*& place = capi::cleared(out);
    place = capi::embed(*capi::required(model, "model").model, {request, "request"}).release();
    return SAKER_OK;
  });
}

const float* saker_vectors_data(const SakerVectors* vectors) {
  return vectors == nullptr ? nullptr : vectors->values.data();
}

size_t saker_vectors_count(const SakerVectors* vectors) {
  return vectors == nullptr ? 0 : vectors->count;
}

size_t saker_vectors_dimensions(const SakerVectors* vectors) {
  return vectors == nullptr ? 0 : vectors->dimensions;
}

int64_t saker_vectors_tokens(const SakerVectors* vectors) {
  return vectors == nullptr ? 0 : vectors->tokens;
}

void saker_vectors_free(SakerVectors* vectors) {
  delete vectors;
}
