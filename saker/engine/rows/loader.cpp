// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/rows/loader.h"

#include <optional>
#include <utility>

namespace saker::engine {

Loader::~Loader() {
  jobs_.close();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Loader::push(std::function<void()> job) {
  if (!thread_.joinable()) {
    thread_ = std::thread([this] {
      while (const std::optional<std::function<void()>> next = jobs_.pop()) {
        (*next)();
      }
    });
  }
  jobs_.push(std::move(job));
}

}  // namespace saker::engine
