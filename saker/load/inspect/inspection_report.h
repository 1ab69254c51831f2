// SPDX-License-Identifier: Apache-2.0
#pragma once

// An inspection in the form that `saker inspect` prints.

#include "saker/base/json/json.h"
#include "saker/load/inspect/inspect.h"

#include <string>

namespace saker::load {

// Fields that don't apply are absent.
Json inspection_json(const Inspection& inspection);

// For people: several lines, each with its line end.
std::string inspection_text(const Inspection& inspection);

}  // namespace saker::load
