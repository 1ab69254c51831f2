// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/launch/find_server.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include <curl/curl.h>

#include <cstddef>
#include <memory>

namespace saker::cli {
namespace {

constexpr std::size_t kMostBytes = 1 << 20;
constexpr long kMilliseconds = 2000;

std::size_t take(char* bytes, std::size_t size, std::size_t count, void* text) {
  auto& body = *static_cast<std::string*>(text);
  if (body.size() + size * count > kMostBytes) {
    return 0;  // Ends the transfer.
  }
  body.append(bytes, size * count);
  return size * count;
}

std::optional<std::string> get(const std::string& address, const std::string& key) {
  const std::unique_ptr<CURL, void (*)(CURL*)> easy(curl_easy_init(), curl_easy_cleanup);
  const std::string header = "Authorization: Bearer " + key;
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      key.empty() ? nullptr : curl_slist_append(nullptr, header.c_str()), curl_slist_free_all
  );
  std::string body;
  curl_easy_setopt(easy.get(), CURLOPT_URL, address.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_NOPROXY, "127.0.0.1,localhost,::1");
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, kMilliseconds);
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &body);
  return curl_easy_perform(easy.get()) == CURLE_OK ? std::optional(body) : std::nullopt;
}

}  // namespace

std::optional<std::vector<ServedName>> served_names(
    const std::string& address, const std::string& key
) {
  const auto body = get(address + "/v1/models", key);
  Json list;
  try {
    list = body ? parse_json(*body, address) : Json();
  } catch (const Error&) {
    return std::nullopt;  // Something else than a server of models.
  }
  if (!list.is_object() || !list.contains("data") || !list["data"].is_array()) {
    return std::nullopt;
  }
  std::vector<ServedName> names;
  for (const Json& card : list["data"]) {
    if (card.is_object() && card.contains("id") && card["id"].is_string()) {
      const Json context = card.value("context_length", Json());
      names.push_back(
          {card["id"].get<std::string>(),
           context.is_number_integer() ? context.get<std::int64_t>() : 0}
      );
    }
  }
  return names;
}

}  // namespace saker::cli
