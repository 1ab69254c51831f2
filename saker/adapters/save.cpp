// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/save.h"

#include "saker/adapters/expert_modules.h"
#include "saker/adapters/resized.h"
#include "saker/adapters/source_parts.h"
#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/files/atomic_folder.h"
#include "saker/base/json/json_members.h"
#include "saker/base/json/json_numbers.h"
#include "saker/load/files/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

namespace saker::adapters {
namespace {

// The first number of a path, and the text after it.
struct LayerPath {
  int layer = -1;
  std::string rest;
};

LayerPath layer_path(std::string_view path) {
  std::string_view left = path;
  while (!left.empty()) {
    const auto dot = left.find('.');
    const auto part = left.substr(0, dot);
    int number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    left = dot == std::string_view::npos ? std::string_view{} : left.substr(dot + 1);
    if (error == std::errc() && end == part.data() + part.size()) {
      return {number, std::string(left)};
    }
  }
  return {-1, std::string(path)};
}

// A module's name in mlx-lm's model.
std::string mlx_path(const std::string& name) {
  constexpr std::string_view kNested = "model.language_model.";
  return name.starts_with(kNested) ? "language_model.model." + name.substr(kNested.size()) : name;
}

// A module's name in transformers' model.
std::string peft_path(const std::string& name) {
  constexpr std::string_view kNested = "language_model.model.";
  return name.starts_with(kNested) ? "model.language_model." + name.substr(kNested.size()) : name;
}

void skip_replaced(const ModuleSource& module, ConversionReport& report) {
  if (module.weight) {
    report.skipped.push_back(fmt::format("{}: a replaced weight", module.name));
  }
  if (module.bias) {
    report.skipped.push_back(fmt::format("{}: a replaced bias", module.name));
  }
  if (module.low_rank && module.low_rank->bias) {
    report.skipped.push_back(fmt::format("{}: a bias of its own (lora_bias)", module.name));
  }
}

// True if the other tool has a place for the low-rank pair; otherwise reports why not.
bool has_place(const ModuleSource& module, AdapterFormat form, ConversionReport& report) {
  if (!module.low_rank) {
    return false;
  }
  const LowRank& low_rank = *module.low_rank;
  const bool by_token = form == AdapterFormat::kMlx;
  if (by_token && is_single_expert(module.name)) {
    report.skipped.push_back(fmt::format("{}: an expert alone", module.name));
    return false;
  }
  if (low_rank.embedding && low_rank.magnitude && low_rank.by_token != by_token) {
    report.skipped.push_back(fmt::format(
        "{}: magnitudes (DoRA) that are not {}",
        module.name,
        by_token ? "by token, as in mlx-lm" : "by column, as in PEFT"
    ));
    return false;
  }
  return true;
}

// The tools treat a tied head differently, and only the base tells if it is tied.
void note_head(
    const AdapterSource& source,
    const ModuleSource& module,
    AdapterFormat form,
    ConversionReport& report
) {
  const bool follows = form == AdapterFormat::kMlx;
  if (module.low_rank->embedding && source.tied_head_follows != follows &&
      !source.modules.contains(kHead)) {
    report.notes.push_back(fmt::format(
        "{}: in {} a head that shares its weight {}",
        module.name,
        follows ? "mlx-lm" : "PEFT",
        follows ? "changes too" : "stays the base's"
    ));
  }
}

// A module's matrix, multiplied by the ratio of its scale to the common scale.
Tensor scaled(const Tensor& tensor, float factor, std::string_view module) {
  if (factor == 1.0F) {
    return tensor;
  }
  auto values = to_floats(tensor);
  for (float& value : values) {
    value *= factor;
    require(
        std::isfinite(value),
        ErrorCode::kUnsupported,
        "{}: its scale is {} times the first module's, and lora_b can't hold that",
        module,
        factor
    );
  }
  return float_tensor(tensor.shape, std::move(values));
}

// [M, N] -> [M, columns], filled with zeros.
Tensor widened(const Tensor& matrix, std::int64_t columns) {
  const auto old = static_cast<std::size_t>(matrix.shape.at(1));
  const auto wide = static_cast<std::size_t>(columns);
  if (old == wide) {
    return matrix;
  }
  const auto from = to_floats(matrix);
  const auto rows = static_cast<std::size_t>(matrix.shape.at(0));
  std::vector<float> values(rows * wide, 0.0F);
  for (std::size_t row = 0; row < rows; ++row) {
    std::copy_n(from.data() + row * old, old, values.data() + row * wide);
  }
  return float_tensor({matrix.shape[0], columns}, std::move(values));
}

void require_some(const ConversionReport& report) {
  require(
      !report.converted.empty(),
      ErrorCode::kUnsupported,
      "the adapter has no low-rank change to write"
  );
}

void write_folder(
    const std::filesystem::path& dir,
    std::string_view weights,
    const load::NamedTensors& tensors,
    const Json& config
) {
  load::write_safetensors(dir / weights, tensors, {{"format", "pt"}});
  AtomicFile file(dir / kAdapterConfig);
  file.write(write_json(config, 2) + "\n");
  file.commit();
}

double dropout_of(const Json& config) {
  const auto own = config.find("lora_parameters");
  const Json& place = own != config.end() && own->is_object() ? *own : config;
  return json_double(place, own != config.end() ? "dropout" : "lora_dropout", 0.0);
}

// mlx-lm changes the last `num_layers` layers. -1 means all: used if the adapter lacks the first
// layer or one between.
int layer_count(const std::set<int>& layers, const Json& config) {
  const auto chosen = config.find("layers_to_transform");
  const bool some = chosen != config.end() && !chosen->is_null();
  const bool from_first = !layers.empty() && *layers.begin() == 0 &&
                          *layers.rbegin() + 1 == static_cast<int>(layers.size());
  return from_first && !some ? static_cast<int>(layers.size()) : -1;
}

// Only a model tells the order of rows in rotated pairs.
void check_order(const AdapterSource& source) {
  for (const auto& [name, module] : source.modules) {
    require(
        !module.low_rank || !module.low_rank->rotated_pairs,
        ErrorCode::kUnsupported,
        "[{}] the order of its rows in a folder depends on the model's heads; 'saker convert MODEL "
        "DST --adapter FILE' takes a model",
        module.name
    );
  }
}

struct Common {
  std::int64_t rank = 0;  // The largest.
  float scale = 1.0F;     // The first module's.
  bool dora = false;
};

Common common_of(const AdapterSource& source) {
  Common result;
  for (const auto& [name, module] : source.modules) {
    if (!module.low_rank) {
      continue;
    }
    const LowRank& low_rank = *module.low_rank;
    if (result.rank == 0) {
      result.scale = low_rank.scale != 0.0F ? low_rank.scale : 1.0F;
      result.dora = low_rank.magnitude.has_value();
    }
    result.rank = std::max(result.rank, low_rank.up.shape.at(1));
  }
  return result;
}

}  // namespace

MlxAdapter to_mlx(const AdapterSource& source) {
  check_order(source);
  const Common common = common_of(source);
  MlxAdapter result;
  auto& [tensors, config, report] = result;
  report.notes = source.warnings;
  std::set<std::string> keys;
  std::set<int> layers;
  for (const auto& [name, module] : source.modules) {
    skip_replaced(module, report);
    if (!has_place(module, AdapterFormat::kMlx, report)) {
      continue;
    }
    note_head(source, module, AdapterFormat::kMlx, report);
    const LowRank& low_rank = *module.low_rank;
    const std::string path = mlx_path(module.name);
    // [K, R] (for an embedding [V, R]) and [R, N].
    const Tensor a = low_rank.embedding ? low_rank.down : transposed(low_rank.down);
    const Tensor b = scaled(low_rank.up, low_rank.scale / common.scale, module.name);
    tensors.emplace_back(path + ".lora_a", widened(a, common.rank));
    tensors.emplace_back(path + ".lora_b", transposed(widened(b, common.rank)));
    if (low_rank.magnitude) {
      tensors.emplace_back(path + ".m", *low_rank.magnitude);
    }
    const LayerPath place = layer_path(path);
    keys.insert(place.rest);
    if (place.layer >= 0) {
      layers.insert(place.layer);
    }
    report.converted.push_back(module.name);
  }
  require_some(report);
  report.tensors = tensors.size();
  config = {
      {"fine_tune_type", common.dora ? "dora" : "lora"},
      {"num_layers", layer_count(layers, source.config)},
      {"lora_parameters",
       {{"rank", common.rank},
        {"scale", common.scale},
        {"dropout", dropout_of(source.config)},
        {"keys", keys}}},
  };
  return result;
}

void write_mlx(const MlxAdapter& adapter, const std::filesystem::path& dir) {
  write_folder(dir, kMlxWeights, adapter.tensors, adapter.config);
}

ConversionReport save_mlx(const AdapterSource& source, const std::filesystem::path& dir) {
  AtomicFolder folder(dir);
  const MlxAdapter adapter = to_mlx(source);
  write_mlx(adapter, folder.path());
  folder.commit();
  return adapter.report;
}

ConversionReport save_peft(const AdapterSource& source, const std::filesystem::path& dir) {
  check_order(source);
  AtomicFolder folder(dir);
  const Common common = common_of(source);
  ConversionReport report;
  report.notes = source.warnings;
  load::NamedTensors tensors;
  std::set<std::string> targets;
  JsonMembers ranks;
  JsonMembers alphas;
  for (const auto& [name, module] : source.modules) {
    skip_replaced(module, report);
    if (!has_place(module, AdapterFormat::kPeft, report)) {
      continue;
    }
    note_head(source, module, AdapterFormat::kPeft, report);
    const LowRank& low_rank = *module.low_rank;
    const std::string path = peft_path(module.name);
    const std::string start = "base_model.model." + path;
    if (low_rank.embedding) {
      tensors.emplace_back(start + ".lora_embedding_A", transposed(low_rank.down));
      tensors.emplace_back(start + ".lora_embedding_B", low_rank.up);
    } else {
      tensors.emplace_back(start + ".lora_A.weight", low_rank.down);
      tensors.emplace_back(start + ".lora_B.weight", low_rank.up);
    }
    if (low_rank.magnitude) {
      tensors.emplace_back(start + ".lora_magnitude_vector", *low_rank.magnitude);
    }
    const auto rank = low_rank.up.shape.at(1);
    if (rank != common.rank) {
      ranks.set(path, rank);
    }
    if (rank != common.rank || low_rank.scale != common.scale) {
      alphas.set(path, static_cast<double>(low_rank.scale) * static_cast<double>(rank));
    }
    targets.insert(path.substr(path.rfind('.') + 1));
    report.converted.push_back(module.name);
  }
  require_some(report);
  report.tensors = tensors.size();
  write_folder(
      folder.path(),
      kPeftWeights,
      tensors,
      {
          {"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"inference_mode", true},
          {"r", common.rank},
          {"lora_alpha", static_cast<double>(common.scale) * static_cast<double>(common.rank)},
          {"lora_dropout", 0.0},
          {"bias", "none"},
          {"use_dora", common.dora},
          {"target_modules", targets},
          {"rank_pattern", ranks.take()},
          {"alpha_pattern", alphas.take()},
      }
  );
  folder.commit();
  return report;
}

}  // namespace saker::adapters
