// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/embeddings.h"

#include "saker/server/turns/fields.h"
#include "saker/server/turns/texts_or_tokens.h"
#include "saker/server/turns/wire.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>

namespace saker::server::openai {
namespace {

constexpr std::size_t kMostInputs = 2048;

// Little-endian float32 in base64, whatever the machine's order.
std::string packed(const std::vector<float>& values) {
  std::string bytes;
  bytes.reserve(values.size() * sizeof(float));
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes += static_cast<char>(bits >> shift & 0xFFU);
    }
  }
  return base64(bytes);
}

}  // namespace

Json embeddings(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const FoundModel found = model.find(fields.text("model").value_or(""));
  engine::EmbedRequest request;
  request.inputs = read_texts_or_tokens(fields.required("input"), "input", model, kMostInputs);
  request.dimensions = static_cast<int>(fields.integer("dimensions", 1, kMaxInt).value_or(0));
  request.view = {.key = found.name, .adapter = found.adapter};
  request.stop = model.stop();
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    fields.fail("encoding_format", "expected float or base64");
  }
  fields.accept({"user"});
  fields.refuse({"truncate_prompt_tokens"});
  fields.log_unknown("embeddings");
  const engine::EmbedResult result = model.model().embed(request);
  Json data = Json::array();
  for (std::size_t i = 0; i < result.embeddings.size(); ++i) {
    const std::vector<float>& values = result.embeddings[i];
    data.push_back(
        {{"object", "embedding"},
         {"index", i},
         {"embedding", format == "base64" ? Json(packed(values)) : Json(values)}}
    );
  }
  return {
      {"object", "list"},
      {"model", found.name},
      {"data", std::move(data)},
      {"usage", {{"prompt_tokens", result.tokens}, {"total_tokens", result.tokens}}},
  };
}

}  // namespace saker::server::openai
