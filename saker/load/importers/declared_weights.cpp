// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/declared_weights.h"

#include "saker/base/error.h"

#include <algorithm>
#include <string>

namespace saker::load::importers {
namespace {

std::optional<std::int64_t> positive_integer(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  const bool fits = found != object.end() && found->is_number_integer() && *found > 0 &&
                    *found <= std::int64_t{1} << 20;
  return fits ? std::optional(found->get<std::int64_t>()) : std::nullopt;
}

std::optional<bool> flag(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_boolean() ? std::optional(found->get<bool>())
                                                      : std::nullopt;
}

}  // namespace

std::optional<BlockSize> read_block_size(const Json& object, std::string_view key) {
  const auto given = object.find(std::string(key));
  if (given == object.end() || given->is_null()) {
    return std::nullopt;
  }
  const auto is_size = [](const Json& value) {
    return value.is_number_integer() && value > 0 && value <= 1 << 20;
  };
  require(
      given->is_array() && given->size() == 2 && is_size((*given)[0]) && is_size((*given)[1]),
      ErrorCode::kCorruptData,
      "config: 'quantization_config.{}' is {}, expected two sizes",
      key,
      describe_json(*given)
  );
  return BlockSize{(*given)[0].get<std::int64_t>(), (*given)[1].get<std::int64_t>()};
}

std::vector<DeclaredWeights> declared_groups(const Json& section, std::string_view format) {
  std::vector<DeclaredWeights> result;
  const auto groups = section.find("config_groups");
  if (groups == section.end() || !groups->is_object()) {
    return result;
  }
  const std::string common = json_string(section, "format", "");
  for (const auto& [name, group] : groups->items()) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (!group.is_object() || weights == group.end() || !weights->is_object()) {
      continue;
    }
    const std::string own = json_string(group, "format", common);
    if (own != format && own != "mixed-precision") {
      continue;
    }
    result.push_back({
        .bits = positive_integer(*weights, "num_bits"),
        .group_size = positive_integer(*weights, "group_size"),
        .symmetric = flag(*weights, "symmetric"),
        .block = read_block_size(*weights, "block_structure"),
    });
  }
  return result;
}

bool all_asymmetric(const std::vector<DeclaredWeights>& groups) {
  return !groups.empty() && std::ranges::all_of(groups, [](const DeclaredWeights& group) {
    return group.symmetric == false;
  });
}

}  // namespace saker::load::importers
