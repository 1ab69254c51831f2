// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model of the C interface: its engine and the adapters that requests name. Any thread may
// call any member.

#include "saker/capi/json_fields.h"
#include "saker/engine/engine.h"

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace saker::capi {

class Model {
 public:
  // Throws as Engine::load, and kInvalidArgument for options.
  Model(const char* name, const char* options);

  engine::Engine& engine() const { return *engine_; }

  // Throws kUnsupported if there is none.
  const text::Tokenizer& tokenizer() const;

  // The members "view", "n" and "token_events", and those of a record.
  engine::Request request(JsonFields fields) const;
  // A key of a view; none: the adapter that the model was loaded with, else the base.
  engine::View view(const std::optional<std::string>& key) const;

  // Loads it. Throws what that throws, and kInvalidArgument for the name.
  void add_adapter(std::string name, std::string path);
  std::vector<engine::NamedAdapter> adapters() const;

 private:
  mutable std::mutex mutex_;  // Guards `adapters_`.
  std::vector<engine::NamedAdapter> adapters_;
  bool has_default_adapter_ = false;  // Given to the constructor.
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace saker::capi

struct SakerModel {
  std::shared_ptr<saker::capi::Model> model;
};
