// SPDX-License-Identifier: Apache-2.0
#pragma once

// Views of one loaded model: the base, a fine-tune at any strength, and null adapters (noise in a
// fine-tune's shape). All share the base's weights. Plain values; no MLX.

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
  double rank_scale = 1.0;  // As if the rank were this many times the adapter's.
};

// One way to see a loaded model.
struct View {
  std::string key = "base";            // Its name in results.
  std::filesystem::path adapter = {};  // Empty: the base.
  double strength = 1.0;               // Scales the adapter's change; 0: the base's bits.
  bool with_strength = false;          // The key names a strength, even if it is 1.
  std::optional<NullView> null = {};
  std::string name = {};  // The adapter's name; empty: the first or only one.
};

// An adapter, by its name in keys.
struct NamedAdapter {
  // For keys of views. Empty: the first adapter, which only "ft" and strengths name.
  std::string name;
  std::filesystem::path dir;
};

// Throws kInvalidArgument for names that mean something else in keys of views ("base", "ft",
// numbers, "null:..."), that contain "@", "," or white space, or that two adapters share.
void check_adapter_names(std::span<const NamedAdapter> adapters);

// A key is "base", "ft" (the first adapter), a number (the first adapter at that strength), the
// name of an adapter, NAME@STRENGTH, or null:SEED[:INIT_SCALE[:RANK_SCALE]]. Throws
// kInvalidArgument for other keys, numbers that are not finite and scales that are not positive.
View parse_view(std::string_view key, std::span<const NamedAdapter> adapters);

// "base", "ft", "scaled_0.50", "null_7" or "null_7_rank2.00": dlm-sway's names of views. Other
// views get more digits ("null_7_init0.10") and the adapter's name ("ft:NAME").
std::string view_id(const View& view);

}  // namespace saker::engine
