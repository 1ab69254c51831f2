// SPDX-License-Identifier: Apache-2.0
#pragma once

// A loaded model as Python holds it: the engine, and the adapters that keys of views name. Answers
// that still stream keep the engine; all members may be called from any thread.

#include "saker/engine/engine.h"

#include "python/bindings/own_process.h"
#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace saker::python {

class Model {
 public:
  Model(
      const std::string& name,
      const engine::EngineOptions& options,
      std::vector<engine::NamedAdapter> adapters,
      const engine::ScoreInstrumentsOptions& instruments
  );

  // Throws kInvalidArgument once the model is closed, and kUnsupported in a fork of the process
  // that loaded it.
  std::shared_ptr<engine::Engine> engine() const;

  // What knows earlier scores and counts. Lives as long as the model.
  engine::ScoreInstruments& instruments() { return instruments_; }

  // The folder or file that was loaded; also once the model is closed.
  const std::string& path() const { return path_; }

  engine::View view(std::string_view key) const { return engine::parse_view(key, adapters_); }

  // Lets go of the engine and ends the trace; again and again.
  void close();

 private:
  OwnProcess process_;
  std::vector<engine::NamedAdapter> adapters_;
  engine::ScoreInstruments instruments_;
  mutable std::mutex mutex_;
  std::shared_ptr<engine::Engine> engine_;
  std::string path_;
};

void bind_model(nanobind::module_& module);

}  // namespace saker::python
