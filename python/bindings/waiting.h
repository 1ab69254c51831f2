// SPDX-License-Identifier: Apache-2.0
#pragma once

// Long work on another thread, while this one sees Python's signals.

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <stop_token>
#include <utility>

namespace saker::python {

// Waits for the work's result, the GIL free meanwhile. A signal whose handler raises, such as
// Ctrl-C, asks the work to stop, waits for its end and raises.
template <typename Result>
Result wait_for(std::future<Result>& result, std::stop_source& stop) {
  constexpr auto kBetweenSignals = std::chrono::milliseconds(50);
  const auto ready = [&] {
    const nanobind::gil_scoped_release release;
    return result.wait_for(kBetweenSignals) == std::future_status::ready;
  };
  while (!ready()) {
    if (PyErr_CheckSignals() != 0) {
      nanobind::python_error raised;
      stop.request_stop();
      while (!ready()) {
      }
      throw std::move(raised);
    }
  }
  return result.get();
}

}  // namespace saker::python
