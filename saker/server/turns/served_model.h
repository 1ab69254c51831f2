// SPDX-License-Identifier: Apache-2.0
#pragma once

// The model of a server: the names by which requests ask for it, its adapters, what the server
// counts. The counts are atomic; all else is immutable.

#include "saker/engine/language_model.h"
#include "saker/server/turns/counters.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server {

struct ModelNames {
  std::vector<std::string> names;  // At least one; the first is in answers.
  // Requests can name them as their model, alone or as "NAME:ADAPTER".
  std::vector<engine::NamedAdapter> adapters = {};
  bool takes_any_name = false;  // Unknown names mean the model too.
};

// A name that a request gave.
struct FoundModel {
  std::string name;               // For answers: as it was asked for.
  std::filesystem::path adapter;  // Empty: the base.
};

class ServedModel {
 public:
  // REQUIRES: `model` outlives it.
  ServedModel(engine::LanguageModel& model, ModelNames names);

  engine::LanguageModel& model() const { return model_; }

  const ModelNames& names() const { return names_; }

  const std::string& name() const { return names_.names.front(); }

  // Throws a 404 for a name that is none of the model's. An empty one is the model.
  FoundModel find(std::string_view name) const;

  std::int64_t context() const { return model_.facts().context_length; }

  std::int64_t created() const { return created_; }  // Seconds since 1970.

  Counters& counters() const { return counters_; }

 private:
  engine::LanguageModel& model_;
  ModelNames names_;
  std::int64_t created_;
  mutable Counters counters_;
};

}  // namespace saker::server
