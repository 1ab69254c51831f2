// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results as JSON lines that scripts rely on (docs/cli.md).

#include "saker/base/json/json.h"

#include <string>
#include <vector>

namespace saker::cli {

// {"min", "median", "max"} of at least one value.
Json spread_json(std::vector<double> values);

// One line of output, whatever bytes the texts hold.
std::string dump_line(const Json& json);

}  // namespace saker::cli
