// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/embeddings.h"

#include "saker/server/turns/fields.h"
#include "saker/server/turns/wire.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace saker::server::openai {
namespace {

constexpr std::size_t kMostInputs = 2048;

bool are_tokens(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& one) { return one.is_number_integer(); });
}

engine::EmbedInput one_input(const Json& value, const std::string& name, const ServedModel& model) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!are_tokens(value)) {
    throw bad_field(name, "expected a string or a list of token ids, got {}", kind_of(value));
  }
  std::vector<std::int32_t> tokens;
  for (const Json& id : value) {
    const std::int64_t vocabulary = model.model().facts().vocab_size;
    if (id.get<std::int64_t>() < 0 || id.get<std::int64_t>() >= vocabulary) {
      throw bad_field(name, "expected token ids below {}, got {}", vocabulary, describe_json(id));
    }
    tokens.push_back(id.get<std::int32_t>());
  }
  return tokens;
}

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

std::vector<engine::EmbedInput> read_inputs(
    const Json& given, std::string_view name, const ServedModel& model
) {
  const std::string path(name);
  std::vector<engine::EmbedInput> inputs;
  if (!given.is_array() || are_tokens(given)) {
    inputs.push_back(one_input(given, path, model));
    return inputs;
  }
  if (given.empty() || given.size() > kMostInputs) {
    throw bad_field(path, "expected 1 to {} inputs, got {}", kMostInputs, given.size());
  }
  for (const Json& one : given) {
    inputs.push_back(one_input(one, path, model));
  }
  return inputs;
}

Json embeddings(const Json& body, const ServedModel& model) {
  Fields fields(body);
  const FoundModel found = model.find(fields.text("model").value_or(""));
  engine::EmbedRequest request;
  request.inputs = read_inputs(fields.required("input"), "input", model);
  request.dimensions =
      static_cast<int>(fields.integer("dimensions", 1, std::numeric_limits<int>::max()).value_or(0)
      );
  request.view = {.key = found.name, .adapter = found.adapter};
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
