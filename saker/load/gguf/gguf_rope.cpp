// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_rope.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

// Llama 3's divisor for frequency i of a head, by its configuration.
double llama3_factor(double theta, std::int64_t head_dim, std::size_t index, double factor) {
  constexpr double kContext = 8192.0;
  constexpr double kLow = 1.0;
  constexpr double kHigh = 4.0;
  const double exponent = 2.0 * static_cast<double>(index) / static_cast<double>(head_dim);
  const double turns = kContext / (2.0 * std::numbers::pi * std::pow(theta, exponent));
  if (turns < kLow) {
    return factor;
  }
  if (turns > kHigh) {
    return 1.0;
  }
  const double smooth = (turns - kLow) / (kHigh - kLow);
  return 1.0 / ((1.0 - smooth) / factor + smooth);
}

// True if these are the factors of a release of Llama 3; releases differ in the largest one.
bool are_llama3s(std::span<const float> factors, const Json& config) {
  constexpr double kTolerance = 1e-4;
  const auto head_dim = config["head_dim"].get<std::int64_t>();
  const double theta = config["rope_theta"].get<double>();
  const double factor = *std::ranges::max_element(factors);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double expected = llama3_factor(theta, head_dim, i, factor);
    if (std::abs(factors[i] - expected) > kTolerance * expected) {
      return false;
    }
  }
  return true;
}

// Reads YaRN's values beside its factor; values that we don't support must be the defaults.
void add_yarn(const Keys& keys, Json& scaling) {
  for (const char* name : {"beta_fast", "beta_slow"}) {
    if (const auto beta = keys.number(fmt::format("rope.scaling.yarn_{}", name))) {
      scaling[name] = *beta;
    }
  }
  for (const char* name :
       {"rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_ext_factor"
       }) {
    const double value = keys.number(name).value_or(1.0);
    keys.expect(value == 1.0, name, fmt::format("{}", value), "1");
  }
}

}  // namespace

void add_rope_factors(const Header& header, std::span<const float> factors, Json& config) {
  const auto pairs = config["head_dim"].get<std::int64_t>() / 2;
  require(
      static_cast<std::int64_t>(factors.size()) == pairs &&
          std::ranges::all_of(factors, [](float f) { return std::isfinite(f) && f > 0.0F; }),
      ErrorCode::kCorruptData,
      "{}: 'rope_freqs.weight' has {} numbers, expected {} above 0",
      header.what(),
      factors.size(),
      pairs
  );
  if (std::ranges::all_of(factors, [](float factor) { return factor == 1.0F; })) {
    return;
  }
  const auto scaling = config.find("rope_scaling");
  const bool is_scaled = scaling != config.end();
  require(
      !is_scaled || (*scaling)["rope_type"] == "linear",
      ErrorCode::kUnsupported,
      "{}: has 'rope_freqs.weight' beside YaRN's scaling, expected one of them",
      header.what()
  );
  if (!is_scaled && are_llama3s(factors, config)) {
    config["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", *std::ranges::max_element(factors)},
        {"low_freq_factor", 1.0},
        {"high_freq_factor", 4.0},
        {"original_max_position_embeddings", 8192},
    };
    return;
  }
  const double all = is_scaled ? (*scaling)["factor"].get<double>() : 1.0;
  Json list = Json::array();
  for (const float factor : factors) {
    list.push_back(factor * all);
  }
  // With equal lists there is no length from which the other one applies.
  config["rope_scaling"] = {
      {"rope_type", "longrope"},
      {"factor", 1.0},
      {"short_factor", list},
      {"long_factor", list},
      {"original_max_position_embeddings",
       config.contains("max_position_embeddings") ? config["max_position_embeddings"] : Json(4096)},
  };
}

void add_rope_scaling(const Keys& keys, Json& config) {
  // The first files had only a linear factor, under another key.
  const double factor =
      keys.number("rope.scaling.factor").value_or(keys.number("rope.scale_linear").value_or(1.0));
  const std::string_view type =
      keys.string("rope.scaling.type").value_or(factor == 1.0 ? "none" : "linear");
  keys.expect(
      type == "none" || type == "linear" || type == "yarn",
      "rope.scaling.type",
      quote(type),
      "none, linear or yarn"
  );
  if (type == "none") {
    return;
  }
  config["rope_scaling"] = {{"rope_type", type}, {"factor", factor}};
  if (type == "yarn") {
    const auto original = keys.integer("rope.scaling.original_context_length");
    config["rope_scaling"]["original_max_position_embeddings"] =
        original ? *original : keys.required("context_length");
    add_yarn(keys, config["rope_scaling"]);
  }
}

void add_long_rope(const Header& header, std::span<const float> factors, Json& config) {
  const Keys keys(header);
  const auto original = keys.integer("rope.scaling.original_context_length");
  if (original) {
    config["original_max_position_embeddings"] = *original;
  }
  if (factors.empty()) {
    return;
  }
  const std::vector<float> list(factors.begin(), factors.end());
  config["rope_scaling"] = {
      {"rope_type", "longrope"}, {"short_factor", list}, {"long_factor", list}
  };
  if (const auto factor = keys.number("rope.scaling.attn_factor")) {
    config["rope_scaling"]["attention_factor"] = *factor;
  }
}

}  // namespace saker::load::gguf
