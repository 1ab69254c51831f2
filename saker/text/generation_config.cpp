// SPDX-License-Identifier: Apache-2.0
#include "saker/text/generation_config.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace saker::text {
namespace {

constexpr std::string_view kFile = "generation_config.json";

// Some lists hold null for "none".
bool is_id(const Json& value) {
  return value.is_null() || (value.is_number_integer() && value >= 0 &&
                             value <= std::numeric_limits<std::int32_t>::max());
}

// True for values that are false as a condition in Python.
bool is_none(const Json& value) {
  return value.is_null() || value == false;
}

}  // namespace

GenerationConfig read_generation_config(const ModelTexts& texts) {
  GenerationConfig config;
  if (!texts.has(kFile)) {
    return config;
  }
  try {
    Json values = texts.read_json(kFile);
    require(
        values.is_object(),
        ErrorCode::kCorruptData,
        "{}: got {}, expected an object",
        texts.shown(kFile),
        describe_json(values)
    );
    config.values = std::move(values);
  } catch (const Error& error) {
    config.warnings.push_back(fmt::format("{}; nothing of it is used", error.what()));
    return config;
  }
  const auto eos = config.values.find("eos_token_id");
  if (eos != config.values.end() && !is_none(*eos) &&
      !(eos->is_array() ? std::ranges::all_of(*eos, is_id) : is_id(*eos))) {
    config.warnings.push_back(fmt::format(
        "{}: eos_token_id: got {}, expected a token id or a list of them; it is not used",
        texts.shown(kFile),
        describe_json(*eos)
    ));
    config.values.erase("eos_token_id");
  }
  return config;
}

}  // namespace saker::text
