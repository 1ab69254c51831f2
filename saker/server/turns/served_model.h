// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model while a request uses it: the names by which requests ask for it, its adapters, its counts.
// The counts are atomic; all else is immutable.

#include "saker/engine/language_model.h"
#include "saker/server/turns/counters.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
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

// The model or adapter that a name means, with or without Ollama's ":latest"; none if it is none of
// these. An empty name is the model. `takes_any_name` is not heeded.
std::optional<FoundModel> find_name(const ModelNames& names, std::string_view name);

class ServedModel {
 public:
  // It holds the model, so that a pool does not unload it. `waited`: for its load.
  ServedModel(
      std::shared_ptr<engine::LanguageModel> model,
      std::shared_ptr<const ModelNames> names,
      std::shared_ptr<Counters> counters,
      std::chrono::nanoseconds waited = {}
  );

  engine::LanguageModel& model() const { return *model_; }

  const ModelNames& names() const { return *names_; }

  const std::string& name() const { return names_->names.front(); }

  // Throws a 404 for a name that is none of the model's. An empty one is the model.
  FoundModel find(std::string_view name) const;

  std::int64_t context() const { return model_->facts().context_length; }

  Counters& counters() const { return *counters_; }

  std::chrono::nanoseconds waited() const { return waited_; }

  // A copy for a request whose client may go away, which `stop` tells.
  ServedModel with_stop(std::stop_token stop) const;

  const std::stop_token& stop() const { return stop_; }

 private:
  std::shared_ptr<engine::LanguageModel> model_;
  std::shared_ptr<const ModelNames> names_;
  std::shared_ptr<Counters> counters_;
  std::chrono::nanoseconds waited_;
  std::stop_token stop_;
};

}  // namespace saker::server
