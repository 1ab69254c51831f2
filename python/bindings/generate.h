// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that are made while Python reads them.

#include "python/bindings/model.h"
#include "python/bindings/own_process.h"
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string_view>

namespace saker::python {

// A request on its way, whose events Python's threads take without the GIL. Ends cancelled when
// nobody holds it.
class Stream {
 public:
  Stream(std::shared_ptr<engine::Engine> engine, engine::Request request);

  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  // The next event, which no other reader gets; none at the end, for each of them. Throws what the
  // request failed with, and what a signal's Python handler raised, after which the request is
  // cancelled.
  std::optional<engine::Event> next();
  // The whole answer, also when events were not taken. Throws as `next`.
  engine::GenerateResult wait();
  // Does nothing in a fork.
  void cancel();

 private:
  // Calls `attempt(timeout)` without the GIL until it returns true, looking for signals now and
  // then. Throws kUnsupported in a fork.
  template <typename Attempt>
  void repeat(Attempt attempt);

  OwnProcess process_;
  std::shared_ptr<engine::Engine> engine_;
  std::optional<engine::Stream> stream_;
};

// A request for a view, without a prompt.
engine::Request request_for(const Model& model, std::string_view view);

// Queues the request.
std::unique_ptr<Stream> submit(const Model& model, engine::Request request);

void bind_generate(nanobind::module_& module);

}  // namespace saker::python
