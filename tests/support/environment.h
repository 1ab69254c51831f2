// SPDX-License-Identifier: Apache-2.0
#pragma once

// The variables that say where the hub and its cache are, set for one test and then put back.

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace saker::testing {

class HubEnvironment {
 public:
  // Those that `values` lacks are unset.
  explicit HubEnvironment(const std::map<std::string, std::string>& values) {
    for (const char* name :
         {"HF_HUB_CACHE",
          "HUGGINGFACE_HUB_CACHE",
          "HF_HOME",
          "XDG_CACHE_HOME",
          "HOME",
          "HF_TOKEN",
          "HUGGING_FACE_HUB_TOKEN",
          "HF_TOKEN_PATH",
          "HF_ENDPOINT",
          "HF_HUB_DISABLE_IMPLICIT_TOKEN",
          "HF_HUB_OFFLINE",
          "TRANSFORMERS_OFFLINE",
          "HF_HUB_DOWNLOAD_TIMEOUT",
          "HTTP_PROXY",
          "http_proxy",
          "REQUEST_METHOD"}) {
      const char* old = std::getenv(name);
      old_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
      const auto value = values.find(name);
      set(name, value == values.end() ? std::nullopt : std::optional(value->second));
    }
  }

  HubEnvironment(const HubEnvironment&) = delete;
  HubEnvironment& operator=(const HubEnvironment&) = delete;

  ~HubEnvironment() {
    for (const auto& [name, value] : old_) {
      set(name, value);
    }
  }

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }

  std::map<std::string, std::optional<std::string>> old_;
};

}  // namespace saker::testing
