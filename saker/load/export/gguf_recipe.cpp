// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/gguf_recipe.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <tuple>

namespace saker::load::gguf {
namespace {

// Which layers a recipe gives more bits.
enum class Layers : std::uint8_t {
  kNone,
  kAll,
  kFirstTwo,
  kFirstFour,
  kFirstSixteenth,
  kFirstEighth,
  kEndsAndEachThird,  // The first and the last eighth, and each third between them.
  kSharedKeys,        // All, if four or more query heads share a key head.
};

struct Choice {
  Layers layers = Layers::kNone;
  TensorType type = TensorType::kFloat32;
  std::optional<TensorType> others = std::nullopt;  // Empty: the recipe's type.
};

}  // namespace

struct Recipe {
  std::string_view name;
  std::uint32_t number = 0;
  TensorType type = TensorType::kFloat32;  // The type of most matrices.
  Choice values = {};                      // attn_v, and attn_qkv.
  Choice down = {};
  std::optional<Choice> down_with_importance = std::nullopt;  // Empty: as `down`.
  std::optional<TensorType> attention_output = std::nullopt;
  bool eight_experts = false;  // With eight experts attn_output is Q5_K.
  bool needs_importance = false;
};

namespace {

using enum TensorType;

constexpr Choice kMore{.layers = Layers::kEndsAndEachThird, .type = kQ6K};
constexpr Choice kFirstDown{.layers = Layers::kFirstEighth, .type = kQ5K};
constexpr Choice kShared{.layers = Layers::kSharedKeys, .type = kQ5K};

constexpr Recipe kMixed5{
    .name = "Q5_K_M",
    .number = 17,
    .type = kQ5K,
    .values = kMore,
    .down = kMore,
};
constexpr Recipe kHalf5{
    .name = "Q5_0",
    .number = 8,
    .type = kQ50,
    .down_with_importance = Choice{.layers = Layers::kFirstEighth, .type = kQ51},
};
constexpr Recipe kMixed4{
    .name = "Q4_K_M",
    .number = 15,
    .type = kQ4K,
    .values = kMore,
    .down = kMore,
    .eight_experts = true,
};
constexpr Recipe kSmall4{
    .name = "Q4_K_S",
    .number = 14,
    .type = kQ4K,
    .values = {.layers = Layers::kFirstFour, .type = kQ5K},
    .down = kFirstDown,
    .eight_experts = true,
};
constexpr Recipe kHalf4{
    .name = "Q4_0",
    .number = 2,
    .type = kQ40,
    .down_with_importance = Choice{.layers = Layers::kFirstEighth, .type = kQ41},
};
constexpr Recipe kTable4{
    .name = "IQ4_NL",
    .number = 25,
    .type = kIq4Nl,
    .values = kShared,
    .down = kFirstDown,
    .down_with_importance = Choice{},
    .eight_experts = true,
};
constexpr Recipe kTableXs4{
    .name = "IQ4_XS",
    .number = 30,
    .type = kIq4Xs,
    .values = kShared,
    .down = kFirstDown,
    .down_with_importance = Choice{},
    .eight_experts = true,
};
constexpr Recipe kLarge3{
    .name = "Q3_K_L",
    .number = 13,
    .type = kQ3K,
    .values = {.layers = Layers::kAll, .type = kQ5K},
    .down = {.layers = Layers::kAll, .type = kQ5K},
    .attention_output = kQ5K,
};
constexpr Recipe kMixed3{
    .name = "Q3_K_M",
    .number = 12,
    .type = kQ3K,
    .values = {.layers = Layers::kFirstTwo, .type = kQ5K, .others = kQ4K},
    .down = {.layers = Layers::kFirstSixteenth, .type = kQ5K, .others = kQ4K},
    .attention_output = kQ4K,
    .eight_experts = true,
};
constexpr Recipe kMixed2{
    .name = "Q2_K",
    .number = 10,
    .type = kQ2K,
    .values = {.layers = Layers::kSharedKeys, .type = kQ4K, .others = kQ3K},
    .down = {.layers = Layers::kAll, .type = kQ3K},
    .attention_output = kQ3K,
    .eight_experts = true,
};
constexpr Recipe kSmall2{
    .name = "Q2_K_S",
    .number = 21,
    .type = kQ2K,
    .values = {.layers = Layers::kSharedKeys, .type = kQ4K},
    .down = {.layers = Layers::kFirstEighth, .type = kQ4K},
    .needs_importance = true,
};
constexpr std::array kRecipes{
    Recipe{.name = "F32", .number = 0, .type = kFloat32},
    Recipe{.name = "BF16", .number = 32, .type = kBFloat16},
    Recipe{.name = "F16", .number = 1, .type = kFloat16},
    Recipe{.name = "Q8_0", .number = 7, .type = kQ80},
    Recipe{.name = "Q6_K", .number = 18, .type = kQ6K},
    kMixed5,
    Recipe{.name = "Q5_K_S", .number = 16, .type = kQ5K},
    Recipe{.name = "Q5_1", .number = 9, .type = kQ51},
    kHalf5,
    kMixed4,
    kSmall4,
    Recipe{.name = "Q4_1", .number = 3, .type = kQ41},
    kHalf4,
    kTable4,
    kTableXs4,
    kLarge3,
    kMixed3,
    Recipe{.name = "Q3_K_S", .number = 11, .type = kQ3K, .eight_experts = true},
    kMixed2,
    kSmall2,
};

constexpr int kEightExperts = 8;

bool is_chosen(Layers layers, int layer, int count, const RecipeFacts& facts) {
  switch (layers) {
    case Layers::kNone:
      return false;
    case Layers::kAll:
      return true;
    case Layers::kFirstTwo:
      return layer < 2;
    case Layers::kFirstFour:
      return layer < 4;
    case Layers::kFirstSixteenth:
      return layer < count / 16;
    case Layers::kFirstEighth:
      return layer < count / 8;
    case Layers::kEndsAndEachThird:
      return layer < count / 8 || layer >= 7 * count / 8 || (layer - count / 8) % 3 == 2;
    case Layers::kSharedKeys:
      return facts.kv_heads > 0 && facts.heads / facts.kv_heads >= 4;
  }
  return false;
}

bool is_value(std::string_view name) {
  return name.ends_with("attn_v.weight") || name.ends_with("attn_qkv.weight");
}

// Norms, routers and other small matrices keep their floats.
bool keeps_floats(const RecipeTensor& tensor) {
  const std::string_view name = tensor.name;
  constexpr std::array<std::string_view, 4> kSmall{
      "_norm.weight", "ffn_gate_inp.weight", "per_layer_model_proj", "ssm_conv1d"
  };
  return tensor.rank < 2 || !name.ends_with("weight") ||
         std::ranges::any_of(
             kSmall,
             [&](std::string_view part) { return name.find(part) != std::string_view::npos; }
         );
}

// The type for columns that are no multiple of the type's block.
TensorType fitting(TensorType type, std::int64_t columns) {
  const auto fits = [&](TensorType one) { return columns % facts_of(one).block == 0; };
  if (fits(type)) {
    return type;
  }
  TensorType narrow = type;
  switch (type) {
    case kIq4Xs:
      narrow = kIq4Nl;
      break;
    case kQ2K:
    case kQ3K:
      narrow = kQ40;
      break;
    case kQ4K:
      narrow = kQ50;
      break;
    case kQ5K:
      narrow = kQ51;
      break;
    case kQ6K:
      narrow = kQ80;
      break;
    default:
      break;
  }
  return fits(narrow) ? narrow : kFloat16;
}

class Chooser {
 public:
  Chooser(const Recipe& recipe, const RecipeFacts& facts, std::span<const RecipeTensor> tensors)
      : recipe_(recipe),
        facts_(facts),
        all_values_(static_cast<int>(std::ranges::count_if(tensors, is_value, &RecipeTensor::name))
        ),
        has_output_(std::ranges::count(tensors, "output.weight", &RecipeTensor::name) > 0) {}

  TensorType type_of(const RecipeTensor& tensor) {
    if (keeps_floats(tensor)) {
      return kFloat32;
    }
    if (plain_dtype(recipe_.type)) {
      return recipe_.type;
    }
    return fitting(choose(tensor), tensor.columns);
  }

 private:
  TensorType choose(const RecipeTensor& tensor) {
    const std::string_view name = tensor.name;
    const bool is_embedding = name.ends_with("token_embd.weight");
    if (name == "output.weight" || (is_embedding && !has_output_)) {
      const bool is_wide =
          recipe_.type == kQ80 || tensor.columns % facts_of(recipe_.type).block != 0;
      return is_wide ? kQ80 : kQ6K;
    }
    if (is_value(name)) {
      return value_type();
    }
    if (name.ends_with("attn_k.weight") && facts_.experts == kEightExperts) {
      return kQ80;
    }
    if (name.find("ffn_down") != std::string_view::npos) {
      return down_type(name);
    }
    if (name.ends_with("attn_output.weight")) {
      return facts_.experts != kEightExperts ? recipe_.attention_output.value_or(recipe_.type)
             : recipe_.eight_experts         ? kQ5K
                                             : recipe_.type;
    }
    return recipe_.type;
  }

  TensorType chosen(const Choice& choice, int layer, int count) const {
    return is_chosen(choice.layers, layer, count, facts_) ? choice.type
                                                          : choice.others.value_or(recipe_.type);
  }

  TensorType value_type() {
    const TensorType type = chosen(recipe_.values, values_, all_values_);
    values_ += 1;
    if (facts_.experts == kEightExperts) {
      return kQ80;
    }
    return is_of_70b() && (type == kQ3K || type == kQ4K) ? kQ5K : type;
  }

  TensorType down_type(std::string_view name) {
    const auto layer = numbered_name(name, "blk.");
    const bool by_name = facts_.experts > 1 && layer;
    const int place = by_name ? static_cast<int>(layer->number) : downs_;
    downs_ += 1;
    const Choice& usual = recipe_.down;
    const Choice choice = facts_.importance ? recipe_.down_with_importance.value_or(usual) : usual;
    return chosen(choice, place, facts_.layers);
  }

  // Models of 70 billion weights have few key heads.
  bool is_of_70b() const {
    constexpr int kLayers = 80;
    return facts_.layers == kLayers &&
           (facts_.architecture == "qwen2" ||
            (facts_.architecture == "llama" && facts_.heads != facts_.kv_heads));
  }

  const Recipe& recipe_;
  const RecipeFacts& facts_;
  int all_values_;
  bool has_output_;
  int values_ = 0;  // Tensors so far.
  int downs_ = 0;
};

std::string upper(std::string_view name) {
  std::string result(name);
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return result;
}

}  // namespace

const Recipe& find_recipe(std::string_view name) {
  const auto* const found = std::ranges::find(kRecipes, upper(name), &Recipe::name);
  require(
      found != kRecipes.end(),
      ErrorCode::kInvalidArgument,
      "type {} is none that we write, expected one of {}",
      quote(name),
      recipe_names()
  );
  return *found;
}

std::string recipe_names() {
  std::string names;
  for (const Recipe& recipe : kRecipes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", recipe.name);
  }
  return names;
}

std::string_view recipe_name(const Recipe& recipe) {
  return recipe.name;
}

std::uint32_t recipe_number(const Recipe& recipe) {
  return recipe.number;
}

bool needs_importance(const Recipe& recipe) {
  return recipe.needs_importance;
}

bool precedes(std::string_view a, std::string_view b) {
  const auto key = [](std::string_view name) {
    const auto layer = numbered_name(name, "blk.");
    return std::tuple(layer ? static_cast<std::int64_t>(layer->number) : -1, name);
  };
  return key(a) < key(b);
}

std::vector<TensorType> tensor_types(
    const Recipe& recipe, const RecipeFacts& facts, std::span<const RecipeTensor> tensors
) {
  Chooser chooser(recipe, facts, tensors);
  std::vector<TensorType> types;
  types.reserve(tensors.size());
  for (const RecipeTensor& tensor : tensors) {
    types.push_back(chooser.type_of(tensor));
  }
  return types;
}

}  // namespace saker::load::gguf
