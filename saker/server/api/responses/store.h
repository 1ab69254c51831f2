// SPDX-License-Identifier: Apache-2.0
#pragma once

// Answers that later requests continue, in memory: bounded in number, bytes and age. The oldest
// ones leave first. Any thread may call any member.

#include "saker/base/json/json.h"

#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace saker::server::responses {

// An answer with the conversation that led to it.
struct StoredResponse {
  Json response;               // The response object.
  Json messages;               // The conversation with the answer, as chat templates take it.
  Json input = Json::array();  // The request's input items.
};

class ResponseStore {
 public:
  struct Bounds {
    std::size_t count = 1000;
    std::size_t bytes = std::size_t{64} << 20;
    std::chrono::seconds age{86'400};
  };

  ResponseStore() : ResponseStore(Bounds()) {}

  explicit ResponseStore(Bounds bounds) : bounds_(bounds) {}

  // An answer that is larger than all bounds is not kept.
  void put(const std::string& id, StoredResponse response);
  std::optional<StoredResponse> get(const std::string& id);
  // False if there was none.
  bool erase(const std::string& id);

 private:
  struct Entry {
    std::string id;
    StoredResponse response;
    std::size_t bytes = 0;
    std::chrono::steady_clock::time_point time;
  };

  void drop_old();
  void drop(std::list<Entry>::iterator entry);

  Bounds bounds_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // The oldest first.
  std::map<std::string, std::list<Entry>::iterator> by_id_;
  std::size_t bytes_ = 0;
};

}  // namespace saker::server::responses
