// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/expert_modules.h"
#include "saker/adapters/source_parts.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <array>
#include <cmath>
#include <utility>

namespace saker::adapters {
namespace {

enum class FineTune : std::uint8_t { kLora, kDora, kFull };

FineTune read_type(const Json& config) {
  const auto type = json_string(config, "fine_tune_type", "lora");
  require(
      type == "lora" || type == "dora" || type == "full",
      ErrorCode::kUnsupported,
      "adapter_config.json: fine_tune_type is {}, expected lora, dora or full",
      quote(type)
  );
  return type == "lora" ? FineTune::kLora : type == "dora" ? FineTune::kDora : FineTune::kFull;
}

// mlx-lm multiplied the scale by this factor while it wrote adapters.npz.
double former_factor(const Json& parameters) {
  const bool has_both = parameters.contains("alpha") && parameters.contains("rank");
  return has_both ? json_double(parameters, "alpha", 1.0) /
                        static_cast<double>(json_int(parameters, "rank", 1))
                  : 1.0;
}

float read_scale(const Json& config, bool former) {
  const auto found = config.find("lora_parameters");
  require(
      found != config.end() && found->is_object(),
      ErrorCode::kCorruptData,
      "adapter_config.json: lora_parameters is missing, expected an object with rank and scale{}",
      config.contains("peft_type") ? "; peft_type is PEFT's, and the tensors are mlx-lm's" : ""
  );
  require(
      !found->contains("rank") || json_int(*found, "rank", 1) > 0,
      ErrorCode::kCorruptData,
      "adapter_config.json: rank is {}, expected a positive integer",
      found->value("rank", Json()).dump()
  );
  require(
      found->contains("scale"),
      ErrorCode::kCorruptData,
      "adapter_config.json: lora_parameters has no scale{}",
      found->contains("alpha") ? " (mlx-lm's is alpha / rank)" : ""
  );
  const double scale = json_double(*found, "scale", 1.0) * (former ? former_factor(*found) : 1.0);
  require(
      std::isfinite(static_cast<float>(scale)),
      ErrorCode::kCorruptData,
      "adapter_config.json: scale is {}, expected a finite number",
      scale
  );
  return static_cast<float>(scale);
}

// The module of a tensor, and its name in the module.
struct Place {
  std::string_view module;
  std::string_view part;
};

Place place_of(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == std::string_view::npos) {
    return {{}, name};
  }
  return {name.substr(0, dot), name.substr(dot + 1)};
}

void add_tensor(
    ModuleSource& module, const std::string& name, std::string_view part, const Tensor& tensor
) {
  const bool embedding = module_name(name).starts_with("embed_tokens");
  LowRank low_rank =
      module.low_rank.value_or(LowRank{.down = {}, .up = {}, .bias = {}, .magnitude = {}});
  low_rank.embedding = embedding;
  if (part == "lora_a") {
    const Tensor checked = checked_tensor(name, tensor, 2);
    low_rank.down = embedding ? checked : transposed(checked);
  } else if (part == "lora_b") {
    low_rank.up = transposed(checked_tensor(name, tensor, 2));
  } else {
    low_rank.magnitude = checked_tensor(name, tensor, 1);
    low_rank.by_token = embedding;
  }
  module.low_rank = std::move(low_rank);
}

// One of the low-rank matrices of all experts of a layer (LoRASwitchLinear): [E, R, K] or [E, N, R].
void add_experts(
    AdapterSource& source,
    const std::string& name,
    std::string_view path,
    std::string_view part,
    const Tensor& tensor
) {
  constexpr std::int64_t kMaxExperts = 1 << 14;
  const Tensor all = checked_tensor(name, tensor, 3);
  require(
      all.shape[0] <= kMaxExperts,
      ErrorCode::kUnsupported,
      "[{}] {} experts, expected at most {}",
      name,
      all.shape[0],
      kMaxExperts
  );
  for (std::int64_t expert = 0; expert < all.shape[0]; ++expert) {
    const std::string own = single_expert(path, static_cast<int>(expert));
    ModuleSource& module = source.modules[std::string(module_name(own))];
    module.name = own;
    if (!module.low_rank) {
      module.low_rank = LowRank{.down = {}, .up = {}, .bias = {}, .magnitude = {}};
    }
    Tensor matrix = rows_of(all, expert, 1);
    matrix.shape.erase(matrix.shape.begin());
    (part == "lora_a" ? module.low_rank->down : module.low_rank->up) = std::move(matrix);
  }
}

}  // namespace

AdapterSource read_mlx(AdapterFiles files) {
  const FineTune type = read_type(files.config);
  const float scale = type == FineTune::kFull ? 1.0F : read_scale(files.config, files.former);
  AdapterSource source;
  source.format = AdapterFormat::kMlx;
  source.tied_head_follows = true;
  for (const auto& [name, tensor] : files.tensors) {
    const auto [path, part] = place_of(name);
    if (tensor.shape.size() == 3 && type == FineTune::kLora &&
        (part == "lora_a" || part == "lora_b")) {
      add_experts(source, name, path, part, tensor);
      continue;
    }
    ModuleSource& module = source.modules[std::string(module_name(path))];
    module.name = std::string(path);
    if (type == FineTune::kFull && part == "weight") {
      module.weight = narrowed(tensor);
    } else if (type == FineTune::kFull && part == "bias") {
      module.bias = checked_tensor(name, tensor, 1);
    } else {
      const bool known =
          part == "lora_a" || part == "lora_b" || (part == "m" && type == FineTune::kDora);
      require(
          known && type != FineTune::kFull,
          ErrorCode::kCorruptData,
          "{}: [{}] is no tensor of such an adapter",
          files.where,
          name
      );
      add_tensor(module, name, part, tensor);
    }
  }
  for (auto& [path, module] : source.modules) {
    if (!module.low_rank) {
      continue;
    }
    module.low_rank->scale = scale;
    check_low_rank(module.name, *module.low_rank);
    require(
        (type == FineTune::kDora) == module.low_rank->magnitude.has_value(),
        ErrorCode::kCorruptData,
        "[{}.m] tensor is missing",
        module.name
    );
  }
  source.config = std::move(files.config);
  return source;
}

}  // namespace saker::adapters
