// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/router.h"

#include <utility>

namespace saker::server::http {

void Router::add(const std::string& method, const std::string& path, Route route) {
  paths_[path].insert_or_assign(method, std::move(route));
}

std::vector<std::pair<std::string, std::string>> Router::routes() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [path, methods] : paths_) {
    for (const auto& [method, _] : methods) {
      all.emplace_back(method, path);
    }
  }
  return all;
}

const Router::Methods* Router::methods_of(std::string_view path) const {
  if (const auto found = paths_.find(path); found != paths_.end()) {
    return &found->second;
  }
  for (std::size_t slash = path.rfind('/'); slash != std::string_view::npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    const std::string below = std::string(path.substr(0, slash)) + "/*";
    if (const auto found = paths_.find(below); found != paths_.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

Router::Found Router::find(std::string_view method, std::string_view path) const {
  const Methods* methods = methods_of(path);
  if (methods == nullptr) {
    return {};
  }
  Found found;
  for (const auto& [name, _] : *methods) {
    found.allowed += found.allowed.empty() ? "" : ", ";
    found.allowed += name == "GET" ? "GET, HEAD" : name;
  }
  const auto route = methods->find(method == "HEAD" ? std::string_view("GET") : method);
  found.route = route == methods->end() ? nullptr : &route->second;
  return found;
}

}  // namespace saker::server::http
