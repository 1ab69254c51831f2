// SPDX-License-Identifier: Apache-2.0
#pragma once

// vLLM's sleep: a model that sleeps is unloaded, and loaded again by `wake` or by a request for it.
// Any thread may call any member.

#include "saker/server/models/model_catalog.h"

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace saker::server {

class Sleepers {
 public:
  explicit Sleepers(std::shared_ptr<ModelCatalog> catalog) : catalog_(std::move(catalog)) {}

  // Unloads a model, or all that are loaded, when nobody uses them. Throws a 404.
  void sleep(const std::optional<std::string>& model);
  // Loads a model, or all that `sleep` unloaded; `done` has the first error. Throws a 404.
  void wake(
      const std::optional<std::string>& model,
      const std::function<void(const std::exception_ptr& error)>& done
  );
  // True if the model, or one of those that sleep, is not loaded. Throws a 404.
  bool are_asleep(const std::optional<std::string>& model) const;

 private:
  std::shared_ptr<ModelCatalog> catalog_;
  mutable std::mutex mutex_;
  std::set<std::string> asleep_;
};

}  // namespace saker::server
