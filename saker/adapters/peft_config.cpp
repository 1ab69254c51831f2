// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/peft_config.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

namespace saker::adapters {
namespace {

constexpr double kMaxRank = 1 << 20;
constexpr std::size_t kMaxPatterns = 1024;  // Up to a megabyte each.

// Fields that change the adapter's meaning, unless they are absent, null, false or empty.
constexpr std::array<std::string_view, 11> kRefused{
    "alora_invocation_tokens",
    "alora_invocation_string",
    "target_parameters",
    "trainable_token_indices",
    "layer_replication",
    "use_qalora",
    "use_bdlora",
    "arrow_config",
    "kasa_config",
    "monteclora_config",
    "velora_config",
};

// Initialisations that do not change the base's weights; all others train against a changed base.
constexpr std::array<std::string_view, 5> kKnownInits{
    "gaussian", "eva", "orthogonal", "mica", "true"
};

bool is_set(const Json& value) {
  return !value.is_null() && !(value.is_boolean() && !value.get<bool>()) &&
         !((value.is_structured() || value.is_string()) && value.empty());
}

void check_init(const Json& config) {
  const auto found = config.find("init_lora_weights");
  if (found == config.end() || !found->is_string()) {
    return;
  }
  const std::string name = ascii_lower(found->get_ref<const std::string&>());
  require(
      std::ranges::find(kKnownInits, name) != kKnownInits.end(),
      ErrorCode::kUnsupported,
      "adapter_config.json: init_lora_weights is {}, which changes the base's weights: save the "
      "adapter for the unchanged base",
      quote(found->get<std::string>())
  );
}

double as_number(const Json& value, std::string_view what) {
  require(
      value.is_number() && std::isfinite(value.get<double>()),
      ErrorCode::kCorruptData,
      "adapter_config.json: {} is {}, expected a finite number",
      what,
      describe_json(value)
  );
  return value.get<double>();
}

// PEFT uses a default if the key is absent, but fails for null.
double read_number(const Json& config, std::string_view key, double fallback) {
  const auto found = config.find(key);
  return found == config.end() ? fallback : as_number(*found, key);
}

// A positive rank, as PEFT requires.
std::int64_t as_rank(double value, std::string_view what) {
  require(
      value >= 1.0 && value <= kMaxRank && std::floor(value) == value,
      ErrorCode::kCorruptData,
      "adapter_config.json: {} is {}, expected a positive integer",
      what,
      value
  );
  return static_cast<std::int64_t>(value);
}

}  // namespace

ModuleNumbers::ModuleNumbers(const Json& config, std::string_view key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) {
    return;
  }
  require(
      found->is_object(),
      ErrorCode::kCorruptData,
      "adapter_config.json: {} is {}, expected an object",
      key,
      describe_json(*found)
  );
  std::size_t patterns = 0;
  for (const auto& [name, value] : found->items()) {
    Entry entry{
        .name = name,
        .pattern = {},
        .value = as_number(value, fmt::format("{} of {}", key, quote(name))),
    };
    if (name.find_first_of("\\^$*+?()[]{}|") != std::string::npos) {
      require(
          ++patterns <= kMaxPatterns,
          ErrorCode::kUnsupported,
          "adapter_config.json: {} has more than {} regular expressions",
          key,
          kMaxPatterns
      );
      entry.pattern.emplace(
          fmt::format(R"(^(.*\.)?({})$)", name),
          fmt::format("adapter_config.json: {} has {}", key, quote(name))
      );
    }
    entries_.push_back(std::move(entry));
  }
}

bool ModuleNumbers::Entry::fits(std::string_view module) const {
  if (pattern) {
    return pattern->matches(module);
  }
  return module.ends_with(name) &&
         (module.size() == name.size() || module[module.size() - name.size() - 1] == '.');
}

double ModuleNumbers::find(std::string_view module, double fallback) const {
  const auto found =
      std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.fits(module); });
  return found == entries_.end() ? fallback : found->value;
}

std::int64_t PeftConfig::rank(std::string_view module) const {
  return as_rank(ranks.find(module, static_cast<double>(default_rank)), "rank_pattern");
}

float PeftConfig::scale(std::string_view module) const {
  const double alpha = alphas.find(module, default_alpha);
  const auto r = static_cast<double>(rank(module));
  const double scale = alpha / (rank_stabilized ? std::sqrt(r) : r);
  require(
      std::isfinite(static_cast<float>(scale)),
      ErrorCode::kCorruptData,
      "adapter_config.json: the scale of {} is {}, which float32 can't hold",
      quote(module),
      scale
  );
  return static_cast<float>(scale);
}

PeftConfig read_peft_config(const Json& config) {
  const auto type = json_string(config, "peft_type", "");
  require(
      type == "LORA",
      ErrorCode::kUnsupported,
      "adapter_config.json: peft_type is {}, expected LORA",
      quote(type)
  );
  for (const auto key : kRefused) {
    const auto found = config.find(key);
    require(
        found == config.end() || !is_set(*found),
        ErrorCode::kUnsupported,
        "adapter_config.json: adapters with {} can't be run",
        key
    );
  }
  check_init(config);
  PeftConfig result;
  result.default_rank = as_rank(read_number(config, "r", 8.0), "r");
  result.default_alpha = read_number(config, "lora_alpha", 8.0);
  result.rank_stabilized = json_bool(config, "use_rslora", false);
  result.dora = json_bool(config, "use_dora", false);
  result.ranks = ModuleNumbers(config, "rank_pattern");
  result.alphas = ModuleNumbers(config, "alpha_pattern");
  return result;
}

}  // namespace saker::adapters
