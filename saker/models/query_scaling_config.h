// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/base/json/json.h"
#include "saker/nn/query_scaling.h"
#include "saker/nn/rope_options.h"

namespace saker::models {

// How queries grow with their position, by numbers beside those of the rope. Throws kCorruptData
// for values out of range.
nn::QueryScaling read_query_scaling(const Json& json, const nn::RopeOptions& rope);

}  // namespace saker::models
