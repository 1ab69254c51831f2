// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/gptq_zeros.h"

#include "saker/load/importers/packed_integers.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

namespace saker::load::importers {
namespace {

constexpr std::string_view kLeaf = ".qzeros";

// Counts of modules with stored zeros, by the kind of zeros.
struct Counts {
  std::size_t all = 0;
  std::size_t symmetric = 0;     // All zeros of the module are the middle, or all one less.
  std::size_t contradicted = 0;  // Symmetric ones for which the label gives another zero.
};

Counts count(const TensorMap& tensors, std::uint32_t labelled) {
  Counts counts;
  for (const auto& [name, tensor] : tensors) {
    if (!name.ends_with(kLeaf)) {
      continue;
    }
    const std::string path = name.substr(0, name.size() - kLeaf.size());
    const auto offset = symmetric_offset(ModuleParts(tensors, path));
    ++counts.all;
    counts.symmetric += offset ? 1 : 0;
    counts.contradicted += offset && *offset != labelled ? 1 : 0;
  }
  return counts;
}

}  // namespace

std::uint32_t GptqZeros::offset(const ModuleParts& parts) const {
  const auto offset = symmetric ? symmetric_offset(parts) : std::nullopt;
  return offset.value_or(labelled);
}

GptqZeros read_gptq_zeros(const Json& section, const TensorMap& tensors) {
  const std::string label = json_string(section, "checkpoint_format", "gptq");
  GptqZeros zeros{.labelled = label == "gptq_v2" ? 0 : kGptqOffset, .symmetric = false, .note = {}};
  const bool declared = json_bool(section, "sym", false);
  const Counts counts = count(tensors, zeros.labelled);
  zeros.symmetric = declared || counts.symmetric == counts.all;
  if (zeros.symmetric && counts.contradicted > 0) {
    zeros.note = fmt::format(
        "config: 'checkpoint_format' is {}, but the zero points are those of symmetric codes in "
        "the format's other version: they are read as the middle",
        label
    );
  } else if (declared && counts.symmetric < counts.all) {
    zeros.note = fmt::format(
        "config: 'sym' is true, but {} of {} modules have zero points of their own, which are used",
        counts.all - counts.symmetric,
        counts.all
    );
  }
  return zeros;
}

}  // namespace saker::load::importers
