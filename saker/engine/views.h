// SPDX-License-Identifier: Apache-2.0
#pragma once

// Views of one loaded model: the base, a fine-tune at any strength, and null adapters, which are
// noise in a fine-tune's shape. All share the base's weights. Plain values; no MLX.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::engine {

// Noise in place of an adapter's LoRA matrices: both are N(0, (init_scale * sqrt(rank_scale))^2).
struct NullView {
  std::uint64_t seed = 0;
  double init_scale = 0.02;
  double rank_scale = 1.0;  // As if the rank were so many times the adapter's.
};

struct View {
  std::string key = "base";            // Names it in results.
  std::filesystem::path adapter = {};  // Empty: the base.
  double strength = 1.0;               // Of the adapter's change; 0: the base's bits.
  bool with_strength = false;          // The key names one, be it 1.
  std::optional<NullView> null = {};
  std::string name = {};  // Of the adapter; empty: it is the first one, or the only one.
};

struct NamedAdapter {
  // For keys of views; empty: only "ft" and strengths name it, if it's the first.
  std::string name;
  std::filesystem::path dir;
};

// Throws kInvalidArgument for names that keys of views have another meaning for ("base", "ft",
// numbers, "null:..."), that hold "@", "," or white space, or that two adapters have.
void check_adapter_names(std::span<const NamedAdapter> adapters);

// "base", "ft" (the first adapter), a number (the first adapter at that strength), the name of an
// adapter, NAME@STRENGTH, or null:SEED[:INIT_SCALE[:RANK_SCALE]]. Throws kInvalidArgument for
// others, for numbers that are not finite and for scales that are not positive.
View parse_view(std::string_view key, std::span<const NamedAdapter> adapters);

// "base", "ft", "scaled_0.50", "null_7", "null_7_rank2.00": as dlm-sway names views. What it has no
// names for is told apart by more digits, "null_7_init0.10", and the adapter's name: "ft:NAME".
std::string view_id(const View& view);

}  // namespace saker::engine
