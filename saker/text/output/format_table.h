// SPDX-License-Identifier: Apache-2.0
#pragma once

// The formats that are known, as data.

#include "saker/text/output/output_format.h"

#include <vector>

namespace saker::text {

std::vector<ReasoningMarkers> all_reasoning_markers();

// In the order in which they are tried; those with more markers first.
std::vector<OutputFormat> make_format_table();

}  // namespace saker::text
