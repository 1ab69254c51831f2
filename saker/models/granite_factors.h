// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/base/json/json.h"
#include "saker/models/decoder_config.h"

namespace saker::models {

// Granite's four factors: of the embedding, of scores (instead of the head's size), of what each
// part adds to the stream, and a divisor of the logits.
void set_granite_factors(DecoderConfig& config, const Json& json);

}  // namespace saker::models
