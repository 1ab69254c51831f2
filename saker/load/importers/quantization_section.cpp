// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/quantization_section.h"

#include "saker/base/json/json_members.h"
#include "saker/load/files/quantization_mode.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>

namespace saker::load::importers {
namespace {

Json section_of(const kernels::WeightFormat& format) {
  return {
      {"group_size", format.group_size},
      {"bits", format.bits},
      {"mode", std::string(mode_name(format.kind))},
  };
}

}  // namespace

void add_quantization(
    Json& config,
    const std::map<std::string, kernels::WeightFormat>& formats,
    const std::set<std::string>& named
) {
  using Key = std::tuple<kernels::WeightKind, int, int>;
  std::map<Key, std::size_t> modules;
  for (const auto& [path, format] : formats) {
    ++modules[{format.kind, format.bits, format.group_size}];
  }
  if (modules.empty()) {
    return;
  }
  const auto& [kind, bits, group_size] =
      std::ranges::max_element(modules, {}, &decltype(modules)::value_type::second)->first;
  const kernels::WeightFormat most{kind, bits, group_size};
  JsonMembers members(section_of(most));
  for (const auto& [path, format] : formats) {
    if (format != most || named.contains(path)) {
      members.set(path, section_of(format));
    }
  }
  const Json section = members.take();
  config["quantization"] = section;
  config["quantization_config"] = section;
}

}  // namespace saker::load::importers
