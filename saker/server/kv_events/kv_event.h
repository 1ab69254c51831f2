// SPDX-License-Identifier: Apache-2.0
#pragma once

// Events of prefix caches as vLLM writes them, for routers that send a prompt where its beginning is
// cached: a list of time, events and rank, in MessagePack.

#include "saker/server/kv_events/block_watch.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::server::kv_events {

enum class EventForm : std::uint8_t {
  kMap,    // An object for each event.
  kArray,  // A list for each, as vLLM had it before 0.24.
};

// `seconds` since 1970.
std::string event_batch(const std::vector<BlockChange>& changes, EventForm form, double seconds);

}  // namespace saker::server::kv_events
