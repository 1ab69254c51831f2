// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/model_slot.h"

#include <algorithm>
#include <string>

namespace saker::engine {
namespace {

PoolState state_of(const ModelSlot& slot) {
  if (slot.is_loading) {
    return PoolState::kLoading;
  }
  if (slot.loaded != nullptr) {
    return slot.takes_users() ? PoolState::kReady : PoolState::kLeaving;
  }
  return slot.waiters.empty() ? PoolState::kUnloaded : PoolState::kWaiting;
}

std::string reason_of(const std::exception_ptr& error) {
  if (error == nullptr) {
    return {};
  }
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& found) {
    return found.what();
  }
}

}  // namespace

bool ModelSlot::has_name(std::string_view name) const {
  return model.name == name || std::ranges::find(model.aliases, name) != model.aliases.end();
}

std::optional<ModelSlot::Clock::time_point> ModelSlot::expires() const {
  if (loaded == nullptr || model.is_pinned || !keep_alive) {
    return std::nullopt;
  }
  return (uses > 0 ? Clock::now() : used) + *keep_alive;
}

PoolEntry entry_of(const ModelSlot& slot) {
  PoolEntry entry = {
      .name = slot.model.name,
      .aliases = slot.model.aliases,
      .state = state_of(slot),
      .bytes = slot.model.bytes,
      .uses = slot.uses,
      .waiting = static_cast<int>(slot.waiters.size()),
      .is_pinned = slot.model.is_pinned,
      .busy_seconds = slot.loaded == nullptr ? 0.0 : slot.loaded->busy_seconds(),
      .error = reason_of(slot.error),
      .expires = {},
  };
  if (const auto expires = slot.expires()) {
    entry.expires =
        std::chrono::system_clock::now() +
        std::chrono::duration_cast<std::chrono::milliseconds>(*expires - ModelSlot::Clock::now());
  }
  return entry;
}

}  // namespace saker::engine
