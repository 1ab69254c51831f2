// SPDX-License-Identifier: Apache-2.0
#include "saker/text/generation_config.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <system_error>
#include <utility>

namespace saker::text {
namespace {

// Some lists hold null for "none".
bool is_id(const Json& value) {
  return value.is_null() || (value.is_number_integer() && value >= 0 &&
                             value <= std::numeric_limits<std::int32_t>::max());
}

// As Python takes a value for a condition.
bool is_none(const Json& value) {
  return value.is_null() || value == false;
}

}  // namespace

GenerationConfig read_generation_config(const std::filesystem::path& model_dir) {
  const auto path = model_dir / "generation_config.json";
  GenerationConfig config;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return config;
  }
  try {
    Json values = read_json_file(path);
    require(
        values.is_object(),
        ErrorCode::kCorruptData,
        "{}: got {}, expected an object",
        quote_path(path),
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
        quote_path(path),
        describe_json(*eos)
    ));
    config.values.erase("eos_token_id");
  }
  return config;
}

}  // namespace saker::text
