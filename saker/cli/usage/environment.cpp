// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/usage/environment.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/utf8.h"
#include "saker/hub/http/web_address.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

constexpr EnvironmentVariable kVariables[] = {
    {"SAKER_CONFIG", "The file of defaults; empty: none."},
    {"SAKER_LOG", "How much to log: trace, debug, info, warn, error or off [warn]."},
    {"SAKER_CPU", "The instruction set of the CPU kernels [the best one]."},
    {"SAKER_MODELS", "The folder of models that saker create made."},
    {"HF_HUB_CACHE", "The hub cache [hub in HF_HOME]."},
    {"HF_HOME", "The hub's folder [huggingface in XDG_CACHE_HOME]."},
    {"HF_ENDPOINT", "The hub's address [https://huggingface.co]."},
    {"HF_TOKEN", "The token for private and gated models."},
    {"HF_TOKEN_PATH", "A file with this token [token in HF_HOME]."},
    {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1: send no token."},
    {"HF_HUB_OFFLINE", "1: never ask the hub."},
    {"HF_HUB_DOWNLOAD_TIMEOUT", "Seconds after which a stalled connection counts as dead [10]."},
    {"OLLAMA_MODELS", "The folder of ollama's models [~/.ollama/models]."},
    {"XDG_CONFIG_HOME", "The folder of saker/config.toml [~/.config]."},
    {"XDG_CACHE_HOME", "The folder of caches [~/.cache]."},
    {"XDG_DATA_HOME", "The folder of saker/models [~/.local/share]."},
    {"XDG_STATE_HOME", "The folder of saker/history [~/.local/state]."},
    {"https_proxy", "The proxy for https addresses."},
    {"http_proxy", "The proxy for http addresses."},
    {"all_proxy", "The proxy for all addresses."},
    {"no_proxy", "Hosts without a proxy."},
    {"SSL_CERT_FILE", "A file of certificates [the system's]."},
    {"REQUESTS_CA_BUNDLE", "The same."},
    {"CURL_CA_BUNDLE", "The same."},
    {"NO_COLOR", "Any value: no colours."},
};

constexpr std::size_t kShownBytes = 60;

}  // namespace

std::span<const EnvironmentVariable> environment_variables() {
  return kVariables;
}

std::string shown_value(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 2> kEnds{"key", "token"};
  constexpr std::array<std::string_view, 3> kParts{"password", "secret", "credential"};
  const std::string lower = ascii_lower(name);
  const bool is_secret =
      (std::ranges::any_of(kEnds, [&](std::string_view end) { return lower.ends_with(end); }) &&
       lower.find("disable") == std::string::npos) ||
      std::ranges::any_of(kParts, [&](std::string_view part) {
        return lower.find(part) != std::string::npos;
      });
  if (is_secret) {
    return "(hidden)";
  }
  const std::string quoted = quote(hub::without_user(value), kShownBytes);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace saker::cli
