// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/peft_config.h"
#include "saker/adapters/source_parts.h"
#include "saker/base/error.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace saker::adapters {
namespace {

enum class Part : std::uint8_t {
  kDown,
  kUp,
  kUpBias,
  kMagnitude,
  kWeight,
  kBias,
  kUnused,  // The base's tensor beside its replacement.
  kUnknown,
};

struct PeftPlace {
  std::string module;
  Part part = Part::kUnknown;
  bool embedding = false;
};

// Names are "q_proj.lora_A.weight", "q_proj.lora_A.default.weight",
// "embed_tokens.lora_embedding_A", "lm_head.modules_to_save.default.weight" or "lm_head.weight":
// PEFT changed them over time.
constexpr std::array<std::string_view, 9> kMarks{
    "lora_A",
    "lora_B",
    "lora_embedding_A",
    "lora_embedding_B",
    "lora_magnitude_vector",
    "modules_to_save",
    "base_layer",
    "original_module",
    "token_adapter",
};

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> parts;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    parts.push_back(name.substr(0, dot));
    name.remove_prefix(dot + 1);
  }
  parts.push_back(name);
  return parts;
}

Part part_of(std::string_view mark, std::string_view last) {
  const bool bias = last == "bias";
  const bool weight = last == "weight";
  if (mark == "lora_A" || mark == "lora_embedding_A") {
    return bias ? Part::kUnknown : Part::kDown;
  }
  if (mark == "lora_B" || mark == "lora_embedding_B") {
    return bias ? Part::kUpBias : Part::kUp;
  }
  if (mark == "lora_magnitude_vector") {
    return bias ? Part::kUnknown : Part::kMagnitude;
  }
  if (mark == "original_module") {
    return Part::kUnused;
  }
  if (mark == "token_adapter") {
    return Part::kUnknown;
  }
  return weight ? Part::kWeight : bias ? Part::kBias : Part::kUnknown;
}

PeftPlace peft_place_of(std::string_view name) {
  constexpr std::ptrdiff_t kMaxAfterMark = 2;  // The adapter's name and "weight".
  const auto parts = split(name);
  const auto mark = std::ranges::find_first_of(parts, kMarks);
  PeftPlace place;
  auto end = parts.end() - 1;
  if (mark == parts.end()) {
    place.part = part_of("", parts.back());
  } else {
    end = mark;
    const bool in_reach = parts.end() - mark - 1 <= kMaxAfterMark;
    place.part = in_reach ? part_of(*mark, parts.back()) : Part::kUnknown;
    place.embedding = mark->starts_with("lora_embedding");
  }
  place.module = fmt::format("{}", fmt::join(parts.begin(), end, "."));
  return place;
}

LowRank& low_rank_of(ModuleSource& module) {
  if (!module.low_rank) {
    module.low_rank = LowRank{.down = {}, .up = {}, .bias = {}, .magnitude = {}};
  }
  return *module.low_rank;
}

void add_tensor(
    ModuleSource& module, const std::string& name, const PeftPlace& place, const Tensor& tensor
) {
  switch (place.part) {
    case Part::kDown: {
      LowRank& low_rank = low_rank_of(module);
      const Tensor down = checked_tensor(name, tensor, 2);
      low_rank.embedding = place.embedding;
      low_rank.down = place.embedding ? transposed(down) : down;
      break;
    }
    case Part::kUp:
      low_rank_of(module).up = checked_tensor(name, tensor, 2);
      break;
    case Part::kUpBias:
      low_rank_of(module).bias = checked_tensor(name, tensor, 1);
      break;
    case Part::kMagnitude:
      low_rank_of(module).magnitude = checked_tensor(name, tensor, 1);
      break;
    case Part::kWeight:
      module.weight = narrowed(tensor);
      break;
    case Part::kBias:
      module.bias = checked_tensor(name, tensor, 1);
      break;
    case Part::kUnused:
    case Part::kUnknown:
      break;
  }
}

void check_module(const ModuleSource& module, const LowRank& low_rank, const PeftConfig& config) {
  check_low_rank(module.name, low_rank);
  const auto rank = low_rank.up.shape.at(1);
  const auto expected = config.rank(module.name);
  require(
      rank == expected,
      ErrorCode::kCorruptData,
      "[{}] rank {}, expected {} as adapter_config.json says",
      module.name,
      rank,
      expected
  );
  require(
      low_rank.magnitude.has_value() == config.dora,
      ErrorCode::kCorruptData,
      "[{}] {} magnitudes, but use_dora is {}",
      module.name,
      low_rank.magnitude ? "has" : "has no",
      config.dora
  );
}

}  // namespace

AdapterSource read_peft(AdapterFiles files) {
  const PeftConfig config = read_peft_config(files.config);
  AdapterSource source;
  source.format = AdapterFormat::kPeft;
  for (const auto& [name, tensor] : files.tensors) {
    const PeftPlace place = peft_place_of(name);
    require(
        place.part != Part::kUnknown && !place.module.empty(),
        ErrorCode::kUnsupported,
        "{}: [{}] is no tensor of a LoRA adapter that can be run",
        files.where,
        name
    );
    if (place.part == Part::kUnused) {
      continue;
    }
    ModuleSource& module = source.modules[std::string(module_name(place.module))];
    constexpr std::string_view kPrefix = "base_model.model.";
    const auto begin = place.module.starts_with(kPrefix) ? kPrefix.size() : 0;
    module.name = place.module.substr(begin);
    add_tensor(module, name, place, tensor);
  }
  for (auto& [path, module] : source.modules) {
    if (module.low_rank) {
      check_module(module, *module.low_rank, config);
      module.low_rank->scale = config.scale(module.name);
    }
  }
  source.config = std::move(files.config);
  return source;
}

}  // namespace saker::adapters
