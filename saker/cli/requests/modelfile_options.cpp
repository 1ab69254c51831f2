// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/modelfile_options.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/engine/options/apply_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace saker::cli {
namespace {

struct OtherName {
  std::string_view theirs;
  std::string_view ours;
};

constexpr std::array<OtherName, 4> kOtherNames{{
    {"num_predict", "max_tokens"},
    {"repeat_penalty", "repetition_penalty"},
    {"repeat_last_n", "repetition_context_size"},
    {"draft_num_predict", "draft_depth"},
}};

// Settings of a server, of samplers that we don't have, or of a cache's layout.
constexpr std::array<std::string_view, 19> kWithoutCounterpart{
    "num_ctx",  "num_batch",        "num_gpu",      "main_gpu",     "num_thread",
    "num_keep", "num_gqa",          "use_mmap",     "use_mlock",    "low_vram",
    "f16_kv",   "vocab_only",       "logits_all",   "numa",         "mirostat",
    "tfs_z",    "penalize_newline", "mirostat_eta", "mirostat_tau",
};

// The text as a number, boolean or JSON object if it is one; else as text.
Json value_of(const std::string& text) {
  try {
    Json value = parse_json(text, "value");
    return value.is_number() || value.is_boolean() || value.is_object() ? value : Json(text);
  } catch (const Error&) {
    return text;
  }
}

// In ollama 0 recent tokens mean none and -1 all; here 0 means all. There a negative number of
// tokens to generate means no limit.
void translate(std::string_view theirs, std::string_view ours, const Json& value, Json& options) {
  if (theirs == "repeat_last_n" && value == 0) {
    options["repetition_penalty"] = 1.0;
  } else if (theirs == "repeat_last_n" && value == -1) {
    options[ours] = 0;
  } else if (theirs == "num_predict" && value.is_number() && value < 0) {
    options[ours] = engine::kNoTokenLimit;
  } else {
    options[ours] = value;
  }
}

bool has_kind(std::string_view name, engine::OptionKind kind) {
  const engine::RequestOption* option = engine::find_option(name);
  return option != nullptr && option->kind == kind;
}

// `message` without the name of the option that it begins with.
std::string_view without_name(std::string_view message) {
  const auto colon = message.find(": ");
  const bool is_named =
      colon != std::string_view::npos && engine::find_option(message.substr(0, colon)) != nullptr;
  return is_named ? message.substr(colon + 2) : message;
}

}  // namespace

std::string option_name(std::string_view name) {
  const auto* const other = std::ranges::find(kOtherNames, name, &OtherName::theirs);
  if (other != kOtherNames.end()) {
    return std::string(other->ours);
  }
  const engine::RequestOption* option = engine::find_option(name);
  return std::string(option == nullptr ? name : option->name);
}

bool is_option_name(std::string_view name) {
  const engine::RequestOption* option = engine::find_option(option_name(name));
  return option != nullptr && option->doors.setting;
}

Json option_of(const std::string& name, const std::string& text, std::string_view shown) {
  const std::string own = option_name(name);
  Json option = Json::object();
  if (has_kind(own, engine::OptionKind::kTexts)) {
    option[own].push_back(text);
    return option;
  }
  try {
    // A text may look like a number.
    const bool is_text = has_kind(own, engine::OptionKind::kText);
    translate(name, own, is_text ? Json(text) : value_of(text), option);
    engine::Request checked;
    engine::apply_record(option, checked);
    engine::check_request(checked);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", shown, without_name(error.what())));
  }
  return option;
}

ModelfileOptions options_of(const std::vector<load::Modelfile::Parameter>& parameters) {
  ModelfileOptions result;
  for (const auto& [name, text] : parameters) {
    const std::string shown = fmt::format("PARAMETER {}", quote(name));
    constexpr std::array<std::string_view, 6> kInstructions{
        "adapter", "id", "prompt", "tokens", "messages", "tools"
    };
    require(
        std::ranges::find(kInstructions, name) == kInstructions.end(),
        ErrorCode::kInvalidArgument,
        "{} is none: ADAPTER, SYSTEM and MESSAGE say such things",
        shown
    );
    if (std::ranges::find(kWithoutCounterpart, name) != kWithoutCounterpart.end()) {
      result.warnings.push_back(fmt::format("PARAMETER {} has no counterpart and is not used", name)
      );
      continue;
    }
    const Json option = option_of(name, text, shown);
    for (const auto& [key, value] : option.items()) {
      if (value.is_array() && result.options.contains(key)) {
        result.options[key].insert(result.options[key].end(), value.begin(), value.end());
      } else {
        result.options[key] = value;
      }
    }
  }
  return result;
}

}  // namespace saker::cli
