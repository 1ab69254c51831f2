// SPDX-License-Identifier: Apache-2.0
#pragma once

// Messages at a terminal while the hub is asked. Nothing if standard error is no terminal.

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/model_name.h"

#include <functional>
#include <string>

namespace saker::cli {

// Says that the hub is asked about a model. Returns a function that reports a failure and its
// retry; empty if there is no terminal.
std::function<void(const std::string& failure)> say_asking(const hub::ModelName& name);

// Runs `ask`, which asks the hub for a model whose name may also be meant as a folder. If the hub
// has no such model, the error adds that there is no such folder.
template <typename Ask>
auto ask_for_missing(const hub::ModelName& name, const Ask& ask) {
  try {
    return ask();
  } catch (const Error& error) {
    require(
        error.code() != ErrorCode::kNotFound,
        ErrorCode::kNotFound,
        "{} is neither a folder nor in the hub cache, nor found on the hub: {}",
        quote(hub::to_string(name)),
        error.what()
    );
    throw;
  }
}

// The hub's host, as people know it.
std::string hub_host();

}  // namespace saker::cli
