// SPDX-License-Identifier: Apache-2.0
#pragma once

// Methods and paths to the functions that answer them. Immutable once requests come.

#include "saker/server/http/exchange.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::server::http {

class Router {
 public:
  using Route = std::function<void(const std::shared_ptr<Exchange>& exchange)>;

  // `path` may end with "/*": it then stands for all paths below. GET answers HEAD too.
  void add(const std::string& method, const std::string& path, Route route);

  struct Found {
    const Route* route = nullptr;  // Null: no such method or path.
    std::string allowed = {};      // Methods of the path; empty: no such path.
  };

  // Methods and paths as they were added, sorted by paths.
  std::vector<std::pair<std::string, std::string>> routes() const;

  Found find(std::string_view method, std::string_view path) const;

 private:
  using Methods = std::map<std::string, Route, std::less<>>;

  const Methods* methods_of(std::string_view path) const;

  std::map<std::string, Methods, std::less<>> paths_;
};

}  // namespace saker::server::http
