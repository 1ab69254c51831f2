// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/otlp.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <curl/curl.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

using server::spans::Sent;
using std::chrono::milliseconds;

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The variable for traces, else the one for all signals; empty if there is neither.
struct Setting {
  std::string name;
  std::string value;
};

Setting setting(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return {name, value == nullptr ? "" : value};
}

Setting otlp_setting(const std::string& what) {
  Setting own = setting("OTEL_EXPORTER_OTLP_TRACES_" + what);
  return own.value.empty() ? setting("OTEL_EXPORTER_OTLP_" + what) : own;
}

std::int64_t number(const Setting& given, std::int64_t fallback, std::int64_t low) {
  constexpr std::int64_t kMost = 86'400'000;
  std::int64_t value = fallback;
  const char* end = given.value.data() + given.value.size();
  const auto [rest, failed] = std::from_chars(given.value.data(), end, value);
  require(
      given.value.empty() ||
          (failed == std::errc() && rest == end && value >= low && value <= kMost),
      ErrorCode::kInvalidArgument,
      "{}: expected an integer from {} to {}, got {}",
      given.name,
      low,
      kMost,
      quote(given.value)
  );
  return value;
}

// "%20" and the like.
std::string percent_decoded(const std::string& text) {
  int size = 0;
  const std::unique_ptr<char, void (*)(void*)> decoded(
      curl_easy_unescape(nullptr, text.c_str(), static_cast<int>(text.size()), &size), curl_free
  );
  return decoded == nullptr ? text : std::string(decoded.get(), static_cast<std::size_t>(size));
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos
             ? ""
             : std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

// "key=value,other=value" with percent-encoded values.
Pairs pairs(const Setting& given) {
  Pairs found;
  std::string_view rest = given.value;
  while (!trimmed(rest).empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (trimmed(one).empty()) {
      continue;
    }
    const std::size_t equals = one.find('=');
    require(
        equals != std::string_view::npos && !trimmed(one.substr(0, equals)).empty(),
        ErrorCode::kInvalidArgument,
        "{}: expected KEY=VALUE parted by commas",
        given.name
    );
    found.emplace_back(
        trimmed(one.substr(0, equals)), percent_decoded(trimmed(one.substr(equals + 1)))
    );
  }
  return found;
}

// The address of traces; empty: none is wanted.
std::string address() {
  if (setting("OTEL_SDK_DISABLED").value == "true" ||
      setting("OTEL_TRACES_EXPORTER").value == "none") {
    return "";
  }
  Setting given = setting("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
  if (given.value.empty()) {
    given = setting("OTEL_EXPORTER_OTLP_ENDPOINT");
    if (given.value.empty()) {
      return "";
    }
    given.value += given.value.ends_with('/') ? "v1/traces" : "/v1/traces";
  }
  require(
      given.value.starts_with("http://") || given.value.starts_with("https://"),
      ErrorCode::kInvalidArgument,
      "{}: expected an address such as http://127.0.0.1:4318, got {}",
      given.name,
      quote(given.value)
  );
  const Setting protocol = otlp_setting("PROTOCOL");
  if (!protocol.value.empty() && protocol.value != "http/json") {
    spdlog::info("{}: spans are sent by http/json", protocol.name);
  }
  return given.value;
}

Json resource() {
  Json attributes = {
      {"service.name", "saker"},
      {"service.version", SAKER_VERSION},
      {"telemetry.sdk.language", "cpp"},
      {"telemetry.sdk.name", "saker"},
  };
  for (auto& [key, value] : pairs(setting("OTEL_RESOURCE_ATTRIBUTES"))) {
    attributes[key] = std::move(value);
  }
  if (const Setting name = setting("OTEL_SERVICE_NAME"); !name.value.empty()) {
    attributes["service.name"] = name.value;
  }
  return attributes;
}

std::size_t drop_answer(char* /*bytes*/, std::size_t size, std::size_t count, void* /*unused*/) {
  return size * count;
}

// Ends the transfer if a stop is requested.
int watch(
    void* stop, curl_off_t /*d*/, curl_off_t /*d_now*/, curl_off_t /*u*/, curl_off_t /*u_now*/
) {
  return static_cast<const std::stop_token*>(stop)->stop_requested() ? 1 : 0;
}

Sent meaning_of(long status) {
  constexpr long kTooMany = 429;
  constexpr long kBadGateway = 502;
  constexpr long kGatewayTimeout = 504;
  if (status >= 200 && status < 300) {
    return Sent::kYes;
  }
  const bool may_work_later =
      status == kTooMany || (status >= kBadGateway && status <= kGatewayTimeout);
  return may_work_later ? Sent::kLater : Sent::kNo;
}

class Collector {
 public:
  Collector(std::string address, Pairs headers, std::string certificate)
      : address_(std::move(address)), certificate_(std::move(certificate)) {
    headers_.emplace_back("Content-Type: application/json");
    for (const auto& [name, value] : headers) {
      require(
          (name + value).find_first_of("\r\n") == std::string::npos,
          ErrorCode::kInvalidArgument,
          "OTEL_EXPORTER_OTLP_HEADERS: a header has the end of a line in it"
      );
      headers_.push_back(name + ": " + value);
    }
  }

  Sent send(const std::string& body, milliseconds limit, const std::stop_token& stop) const {
    const std::unique_ptr<CURL, void (*)(CURL*)> easy(curl_easy_init(), curl_easy_cleanup);
    if (easy == nullptr) {
      return Sent::kLater;
    }
    curl_slist* list = nullptr;
    for (const std::string& header : headers_) {
      curl_slist* const longer = curl_slist_append(list, header.c_str());
      list = longer == nullptr ? list : longer;
    }
    const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);
    CURL* const handle = easy.get();
    curl_easy_setopt(handle, CURLOPT_URL, address_.c_str());
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_NOPROXY, "127.0.0.1,localhost,::1");
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(limit.count()));
    curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, drop_answer);
    curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, watch);
    curl_easy_setopt(handle, CURLOPT_XFERINFODATA, &stop);
    if (!certificate_.empty()) {
      curl_easy_setopt(handle, CURLOPT_CAINFO, certificate_.c_str());
    }
    if (const CURLcode code = curl_easy_perform(handle); code != CURLE_OK) {
      spdlog::debug("spans: {}: {}", address_, curl_easy_strerror(code));
      return Sent::kLater;
    }
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return meaning_of(status);
  }

 private:
  std::string address_;
  std::string certificate_;  // Empty: the system's.
  std::vector<std::string> headers_;
};

}  // namespace

server::Tracing tracing_of_environment() {
  const std::string to = address();
  if (to.empty()) {
    return {};
  }
  const auto collector = std::make_shared<const Collector>(
      to, pairs(otlp_setting("HEADERS")), otlp_setting("CERTIFICATE").value
  );
  server::spans::SpanQueueOptions options;
  options.send = [collector](
                     const std::string& body, milliseconds limit, const std::stop_token& stop
                 ) { return collector->send(body, limit, stop); };
  options.resource = resource();
  const auto size = [](const Setting& given, std::size_t fallback) {
    return static_cast<std::size_t>(number(given, static_cast<std::int64_t>(fallback), 1));
  };
  options.most_spans = size(setting("OTEL_BSP_MAX_QUEUE_SIZE"), options.most_spans);
  options.batch = size(setting("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), options.batch);
  options.delay =
      milliseconds(number(setting("OTEL_BSP_SCHEDULE_DELAY"), options.delay.count(), 1));
  options.limit = milliseconds(number(otlp_setting("TIMEOUT"), options.limit.count(), 1));
  return {
      .queue = std::make_shared<server::spans::SpanQueue>(std::move(options)),
      .sampler = server::spans::parse_sampler(
          setting("OTEL_TRACES_SAMPLER").value, setting("OTEL_TRACES_SAMPLER_ARG").value
      )
  };
}

}  // namespace saker::cli
