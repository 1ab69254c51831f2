// SPDX-License-Identifier: Apache-2.0
#pragma once

// Builds a JSON object with many members in linear time; nlohmann's ordered objects search all keys
// for each one added. Threading: one thread.

#include "saker/base/json/json.h"

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace saker {

class JsonMembers {
 public:
  JsonMembers() = default;

  // Starts with these members. REQUIRES: an object.
  explicit JsonMembers(Json object) : object_(std::move(object.get_ref<Json::object_t&>())) {
    for (const auto& [key, value] : object_) {
      places_.emplace(key, places_.size());
    }
  }

  // Adds or replaces a member; keys keep the order in which they were first added.
  void set(const std::string& key, Json value) {
    std::vector<std::pair<const std::string, Json>>& members = object_;
    const auto [place, is_new] = places_.emplace(key, members.size());
    if (is_new) {
      members.emplace_back(key, std::move(value));
    } else {
      members[place->second].second = std::move(value);
    }
  }

  Json take() { return std::move(object_); }

 private:
  Json::object_t object_;
  std::unordered_map<std::string, std::size_t> places_;
};

// Converts a map to an object.
template <typename Map>
Json json_object(const Map& map) {
  JsonMembers members;
  for (const auto& [key, value] : map) {
    members.set(key, value);
  }
  return members.take();
}

}  // namespace saker
