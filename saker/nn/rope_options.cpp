// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/rope_options.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace saker::nn {
namespace {

// A member that is an object with content; null if it is absent, null or {}.
const Json* object_member(const Json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    return nullptr;
  }
  require(
      found->is_object(),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an object",
      key,
      found->dump()
  );
  return found->empty() ? nullptr : &*found;
}

// The part of `rope_parameters` for such layers.
const Json* parameters_of(const Json& config, const RopeKeys& keys) {
  const auto* parameters = object_member(config, "rope_parameters");
  if (parameters == nullptr) {
    return nullptr;
  }
  if (parameters->contains("full_attention") || parameters->contains("sliding_attention")) {
    return object_member(*parameters, keys.layer_type);
  }
  return keys.scaled ? parameters : nullptr;
}

// The object that describes the rope of such layers; null: the default kind.
const Json* find_parameters(const Json& config, const RopeKeys& keys) {
  const auto* scaling = object_member(config, "rope_scaling");
  if (scaling != nullptr) {
    return keys.scaled ? scaling : nullptr;
  }
  return parameters_of(config, keys);
}

double number_above(const Json& object, std::string_view key, double fallback, double low) {
  const double value = json_double(object, key, fallback);
  require(
      std::isfinite(value) && value > low,
      ErrorCode::kCorruptData,
      "[config] rope {} is {}, expected a number above {}",
      key,
      value,
      low
  );
  return value;
}

// Theta if the configuration has none at its root: from `rope_parameters`, even if the rest comes
// from a `rope_scaling` that was added by hand for longer contexts.
double default_theta(const Json& config, const RopeKeys& keys) {
  const auto* parameters = parameters_of(config, keys);
  return parameters == nullptr ? keys.default_theta
                               : number_above(*parameters, "rope_theta", keys.default_theta, 1.0);
}

double required_factor(const Json& parameters) {
  const auto factor = parameters.find("factor");
  require(
      factor != parameters.end() && !factor->is_null(),
      ErrorCode::kCorruptData,
      "[config] rope factor is missing"
  );
  return number_above(parameters, "factor", 1.0, 0.0);
}

double yarn_scale(double factor, double weight) {
  return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

// The model's context before it was extended. As in transformers, the root's value counts before
// that of the parameters.
double original_context(const Json& config, const Json& parameters, double fallback) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  return number_above(config, kKey, number_above(parameters, kKey, fallback, 0.0), 0.0);
}

double context_of(const Json& config) {
  return number_above(config, "max_position_embeddings", 4096.0, 0.0);
}

void read_yarn(const Json& config, const Json& parameters, RopeOptions& options) {
  options.kind = RopeKind::kYarn;
  options.original_context = original_context(config, parameters, context_of(config));
  // `null`: the ratio of extended to original context.
  const auto factor = parameters.find("factor");
  options.factor = factor != parameters.end() && factor->is_null()
                       ? context_of(config) / options.original_context
                       : required_factor(parameters);
  options.beta_fast = number_above(parameters, "beta_fast", 32.0, 0.0);
  options.beta_slow = number_above(parameters, "beta_slow", 1.0, 0.0);
  options.truncate = json_bool(parameters, "truncate", true);
  const double mscale = number_above(parameters, "mscale", 0.0, -1.0);
  const double mscale_all_dim = number_above(parameters, "mscale_all_dim", 0.0, -1.0);
  const double inferred =
      mscale > 0.0 && mscale_all_dim > 0.0
          ? yarn_scale(options.factor, mscale) / yarn_scale(options.factor, mscale_all_dim)
          : yarn_scale(options.factor, 1.0);
  options.attention_factor = number_above(parameters, "attention_factor", inferred, 0.0);
  if (mscale_all_dim > 0.0) {
    const double scale = yarn_scale(options.factor, mscale_all_dim);
    options.score_factor = scale * scale;
  }
}

void read_llama3(const Json& config, const Json& parameters, RopeOptions& options) {
  options.kind = RopeKind::kLlama3;
  options.factor = required_factor(parameters);
  options.original_context = original_context(config, parameters, 8192.0);
  options.low_freq_factor = number_above(parameters, "low_freq_factor", 1.0, 0.0);
  options.high_freq_factor = number_above(parameters, "high_freq_factor", 4.0, 0.0);
  require(
      options.high_freq_factor > options.low_freq_factor,
      ErrorCode::kCorruptData,
      "[config] rope high_freq_factor is {}, expected more than low_freq_factor {}",
      options.high_freq_factor,
      options.low_freq_factor
  );
}

std::vector<double> factor_list(const Json& parameters, const char* key) {
  const auto found = parameters.find(key);
  const auto is_factor = [](const Json& value) {
    return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0.0;
  };
  require(
      found != parameters.end() && found->is_array() && std::ranges::all_of(*found, is_factor),
      ErrorCode::kCorruptData,
      "[config] rope {} is {}, expected a list of numbers above 0",
      key,
      found == parameters.end() ? "missing" : describe_json(*found)
  );
  return found->get<std::vector<double>>();
}

// One list of factors for all lengths: the long one where the context exceeds the original one
// (docs/adr/0081).
void read_longrope(const Json& config, const Json& parameters, RopeOptions& options) {
  options.kind = RopeKind::kFactors;
  const double context = context_of(config);
  options.original_context = original_context(config, parameters, context);
  options.factors =
      factor_list(parameters, context > options.original_context ? "long_factor" : "short_factor");
  const double extended =
      number_above(parameters, "factor", context / options.original_context, 0.0);
  const double inferred =
      extended <= 1.0 ? 1.0
                      : std::sqrt(1.0 + std::log(extended) / std::log(options.original_context));
  options.attention_factor = number_above(parameters, "attention_factor", inferred, 0.0);
}

double checked_part(double part) {
  require(
      part > 0.0 && part <= 1.0,
      ErrorCode::kCorruptData,
      "[config] partial_rotary_factor is {}, expected a number in (0, 1]",
      part
  );
  return part;
}

// The rotating part of a head in this object; else `fallback`.
double read_part(const Json& object, const RopeKeys& keys, double fallback) {
  const double part = json_double(object, "partial_rotary_factor", fallback);
  require(
      keys.partial || keys.default_part < 1.0 || part == 1.0,
      ErrorCode::kUnsupported,
      "[config] partial_rotary_factor is {}, this architecture rotates whole heads",
      part
  );
  return checked_part(part);
}

}  // namespace

RopeOptions read_rope_options(const Json& config, const RopeKeys& keys) {
  RopeOptions options;
  options.theta = number_above(config, keys.theta, default_theta(config, keys), 1.0);
  options.part = read_part(config, keys, keys.default_part);
  require(
      !json_bool(config, "rope_traditional", false),
      ErrorCode::kUnsupported,
      "[config] rope_traditional is true, only false can be run"
  );
  const auto* parameters = find_parameters(config, keys);
  if (parameters == nullptr) {
    return options;
  }
  options.theta = number_above(*parameters, "rope_theta", options.theta, 1.0);
  const auto kind =
      json_string(*parameters, "rope_type", json_string(*parameters, "type", "default"));
  if (kind == "proportional") {
    options.kind = RopeKind::kProportional;
    options.part = checked_part(json_double(*parameters, "partial_rotary_factor", 1.0));
    options.factor = number_above(*parameters, "factor", 1.0, 0.0);
    return options;
  }
  options.part = read_part(*parameters, keys, options.part);
  if (kind == "linear") {
    options.kind = RopeKind::kLinear;
    options.factor = required_factor(*parameters);
  } else if (kind == "llama3") {
    read_llama3(config, *parameters, options);
  } else if (kind == "yarn") {
    read_yarn(config, *parameters, options);
  } else if (kind == "longrope") {
    read_longrope(config, *parameters, options);
  } else {
    // Dynamic equals the default kind up to max_position_embeddings, where requests end anyway.
    require(
        kind == "default" || kind == "dynamic" || kind == "mrope",
        ErrorCode::kUnsupported,
        "[config] rope_type is \"{}\", expected default, dynamic, linear, llama3, longrope, mrope, "
        "proportional or yarn",
        kind
    );
  }
  return options;
}

}  // namespace saker::nn
