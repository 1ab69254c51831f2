// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/responses/store.h"

#include "saker/base/json/json_numbers.h"

#include <utility>

namespace saker::server::responses {

void ResponseStore::put(const std::string& id, StoredResponse response) {
  const std::size_t bytes = write_json(response.response).size() +
                            write_json(response.messages).size() +
                            write_json(response.input).size();
  const std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) {
    drop(found->second);
  }
  entries_.push_back({id, std::move(response), bytes, std::chrono::steady_clock::now()});
  by_id_[id] = std::prev(entries_.end());
  bytes_ += bytes;
  drop_old();
}

std::optional<StoredResponse> ResponseStore::get(const std::string& id) {
  const std::lock_guard lock(mutex_);
  drop_old();
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::nullopt : std::optional(found->second->response);
}

bool ResponseStore::erase(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) {
    return false;
  }
  drop(found->second);
  return true;
}

void ResponseStore::drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

void ResponseStore::drop_old() {
  const auto oldest = std::chrono::steady_clock::now() - bounds_.age;
  while (!entries_.empty() && (entries_.size() > bounds_.count || bytes_ > bounds_.bytes ||
                               entries_.front().time < oldest)) {
    drop(entries_.begin());
  }
}

}  // namespace saker::server::responses
