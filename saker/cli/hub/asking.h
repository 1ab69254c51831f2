// SPDX-License-Identifier: Apache-2.0
#pragma once

// What people at a terminal see while the hub is asked. Nothing where standard error is none.

#include "saker/hub/model_name.h"

#include <functional>
#include <string>

namespace saker::cli {

// Says that the hub is being asked about a model. What comes back says that something failed and is
// tried again; empty where there is no terminal.
std::function<void(const std::string& failure)> say_asking(const hub::ModelName& name);

// The hub's host, as people know it.
std::string hub_host();

}  // namespace saker::cli
