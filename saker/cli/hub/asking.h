// SPDX-License-Identifier: Apache-2.0
#pragma once

// What people at a terminal see while the hub is asked. Nothing where standard error is none.

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/model_name.h"

#include <functional>
#include <string>

namespace saker::cli {

// Says that the hub is being asked about a model. What comes back says that something failed and is
// tried again; empty where there is no terminal.
std::function<void(const std::string& failure)> say_asking(const hub::ModelName& name);

// Does what asks the hub for a model that somebody has named without saying that it is one there.
// Where the hub has none either, the error says that no folder is called so.
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
