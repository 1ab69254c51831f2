// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/rope_metadata.h"

#include "saker/base/error.h"
#include "saker/nn/rope.h"
#include "saker/nn/rope_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::load::gguf {
namespace {

std::string_view kind_name(nn::RopeKind kind) {
  switch (kind) {
    case nn::RopeKind::kLinear:
      return "linear";
    case nn::RopeKind::kLlama3:
      return "llama3";
    case nn::RopeKind::kYarn:
      return "yarn";
    case nn::RopeKind::kProportional:
      return "proportional";
    case nn::RopeKind::kFactors:
      return "longrope";
    default:
      return "default";
  }
}

// The divisor of each pair's frequency, whatever rule makes it.
std::vector<float> divisors(const nn::RopeOptions& rope, int head_dim) {
  nn::RopeOptions plain;
  plain.theta = rope.theta;
  plain.part = rope.part;
  const nn::Rope whole(head_dim, plain);
  const nn::Rope scaled(head_dim, rope);
  std::vector<float> factors;
  for (std::size_t i = 0; i < whole.frequencies().size(); ++i) {
    factors.push_back(static_cast<float>(whole.frequencies()[i] / scaled.frequencies()[i]));
  }
  return factors;
}

void expect_attention_factor(const FamilyPairs& pairs, double got, double expected) {
  constexpr double kTolerance = 1e-6;
  pairs.expect(
      std::abs(got - expected) <= kTolerance * expected,
      "rope attention_factor",
      fmt::format("{}", got),
      fmt::format("{}", expected)
  );
}

void add_yarn_scaling(FamilyPairs& pairs, const nn::RopeOptions& rope) {
  const nn::RopeOptions defaults;
  const double scale = rope.factor <= 1.0 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0;
  expect_attention_factor(pairs, rope.attention_factor, scale);
  pairs.expect(rope.truncate, "rope truncate", "false", "true");
  constexpr double kMostPositions = 4294967295.0;
  const double original = rope.original_context;
  pairs.expect(
      original >= 1.0 && original <= kMostPositions && std::trunc(original) == original,
      "rope original_max_position_embeddings",
      fmt::format("{}", original),
      "a whole number"
  );
  pairs.add_integer("rope.scaling.original_context_length", static_cast<std::int64_t>(original));
  if (rope.beta_fast != defaults.beta_fast) {
    pairs.add_number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  }
  if (rope.beta_slow != defaults.beta_slow) {
    pairs.add_number("rope.scaling.yarn_beta_slow", rope.beta_slow);
  }
}

std::vector<float> add_scaling(
    FamilyPairs& pairs, const Family& family, const nn::RopeOptions& rope, int head_dim
) {
  using enum nn::RopeKind;
  if (rope.kind == kDefault) {
    return {};
  }
  // Only Llama's files have a table of factors. YaRN would scale layers of both kinds.
  const bool has_tables = family.rotated_pairs;
  const bool one_rope = family.window_pattern == 0;
  pairs.expect(
      rope.kind == kLinear || (rope.kind == kYarn && one_rope) ||
          ((rope.kind == kLlama3 || rope.kind == kFactors) && has_tables),
      "rope_type",
      kind_name(rope.kind),
      has_tables ? "default, linear, llama3, longrope or yarn"
      : one_rope ? "default, linear or yarn"
                 : "default or linear"
  );
  if (rope.kind == kLlama3 || rope.kind == kFactors) {
    expect_attention_factor(pairs, rope.attention_factor, 1.0);
    return divisors(rope, head_dim);
  }
  pairs.add("rope.scaling.type", std::string(kind_name(rope.kind)));
  pairs.add_number("rope.scaling.factor", rope.factor);
  if (rope.kind == kYarn) {
    add_yarn_scaling(pairs, rope);
  }
  return {};
}

// Pairs for each of the positions of images; those of text are equal. llama.cpp needs four numbers.
std::vector<std::int32_t> position_sections(const Json& text) {
  constexpr std::size_t kSections = 4;
  constexpr std::int64_t kMost = 1 << 14;
  std::vector<std::int32_t> sections{11, 11, 10};
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const Json* rope = find_member(text, key);
    const Json* given = rope != nullptr ? find_member(*rope, "mrope_section") : nullptr;
    if (given == nullptr || given->is_null()) {
      continue;
    }
    const auto is_size = [](const Json& size) {
      return size.is_number_integer() && size >= 0 && size <= kMost;
    };
    require(
        given->is_array() && given->size() <= kSections && std::ranges::all_of(*given, is_size),
        ErrorCode::kCorruptData,
        "[config] rope mrope_section is {}, expected at most {} numbers up to {}",
        describe_json(*given),
        kSections,
        kMost
    );
    sections = given->get<std::vector<std::int32_t>>();
  }
  sections.resize(kSections);
  return sections;
}

}  // namespace

std::vector<float> add_rope(
    FamilyPairs& pairs, const Family& family, const models::DecoderConfig& decoder, const Json& text
) {
  const nn::RopeOptions& rope = decoder.ropes.front();
  pairs.add_number("rope.freq_base", rope.theta);
  pairs.add_integer("rope.dimension_count", rope.rotated(decoder.head_dim));
  if (family.window_pattern > 0) {
    const nn::RopeOptions& sliding = decoder.ropes.back();
    pairs.expect(
        sliding.kind == nn::RopeKind::kDefault,
        "rope_type of sliding layers",
        kind_name(sliding.kind),
        "default"
    );
    pairs.add_number("rope.freq_base_swa", sliding.theta);
  }
  if (family.linear_attention) {
    pairs.add("rope.dimension_sections", position_sections(text));
  }
  return add_scaling(pairs, family, rope, decoder.head_dim);
}

}  // namespace saker::load::gguf
