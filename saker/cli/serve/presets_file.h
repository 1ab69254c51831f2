// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file of models that `serve --models` reads, TOML or JSON:
//
//   {"defaults": {...}, "models": {NAME: {"model": PATH or REPO, ...}}}
//
// docs/server.md lists the members. Paths are relative to the file.

#include "saker/engine/pool/model_pool.h"
#include "saker/engine/pool/preset.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::cli {

// A model that is served, and how.
struct ModelPreset {
  std::string model;               // A folder, a file or a repo id; empty: the bundled model.
  std::vector<std::string> names;  // The first is in answers.
  std::vector<engine::NamedAdapter> adapters = {};
  std::optional<std::string> draft = {
  };  // As --draft; none: the command line's. So are the others.
  std::optional<int> batch = {};
  std::optional<std::size_t> prefix_cache = {};  // Bytes.
  std::optional<std::size_t> cache_memory = {};  // Bytes.
  std::optional<int> prefill_step = {};
  std::optional<bool> fast_prefill = {};
  std::optional<engine::KeepAlive> keep_alive = {};
  bool is_pinned = false;  // It is loaded at the start, and stays.
  engine::Preset preset = {};
};

// Throws kInvalidArgument, naming file, line and member, for what makes no sense; what PresetsText
// throws.
std::vector<ModelPreset> read_presets(const std::filesystem::path& file);

}  // namespace saker::cli
