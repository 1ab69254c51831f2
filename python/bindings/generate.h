// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that are made while Python reads them.

#include "python/bindings/model.h"
#include "python/bindings/own_process.h"
#include <nanobind/nanobind.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace saker::python {

// A request on its way. The engine's thread fills in pieces and the end, Python's threads take them
// without the GIL. Ends cancelled when nobody holds it.
class Stream {
 public:
  Stream(std::shared_ptr<engine::Engine> engine, engine::GenerateRequest request);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // The next piece of text, which no other reader gets; none at the end, for each of them. Throws
  // what the request failed with, and what a signal's Python handler raised, after which the
  // request is cancelled.
  std::optional<std::string> next();
  // The whole answer, also when pieces were not taken. Throws as `next`.
  const engine::GenerateResult& wait();
  // Does nothing in a fork.
  void cancel();

 private:
  // What both threads see.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> pieces;
    std::optional<engine::GenerateResult> result;
    std::exception_ptr error;

    bool ended() const { return result.has_value() || error != nullptr; }
  };

  // Until `ready` of the shared state, looking for signals now and then. Throws kUnsupported in a
  // fork.
  template <typename Ready>
  void wait_for(Ready ready);
  static engine::EventHandler handler(const std::shared_ptr<Shared>& shared);

  OwnProcess process_;
  std::shared_ptr<engine::Engine> engine_;
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::uint64_t id_;
};

// A request for a view, without a prompt.
engine::GenerateRequest request_for(const Model& model, std::string_view view);

// Queues the request.
std::unique_ptr<Stream> submit(const Model& model, engine::GenerateRequest request);

void bind_generate(nanobind::module_& module);

}  // namespace saker::python
