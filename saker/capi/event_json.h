// SPDX-License-Identifier: Apache-2.0
#pragma once

// An event of a stream as a program sees it.

#include "saker/base/json/json.h"
#include "saker/capi/status.h"
#include "saker/engine/event.h"

#include <string>

struct SakerEvent {
  saker::engine::Event event;
  bool with_logprobs = false;                     // The request asked for them.
  saker::capi::Outcome outcome = {SAKER_OK, {}};  // A failure has one.
};

namespace saker::capi {

// The text of a piece, of a token, of a whole answer or of a failure. Empty for other events.
const std::string& text_of(const SakerEvent& event);

// All members of the event.
Json event_json(const SakerEvent& event);

}  // namespace saker::capi
