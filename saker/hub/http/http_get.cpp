// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/http/http_get.h"

#include "saker/base/characters/letter_case.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/hub/http/response_error.h"
#include "saker/hub/http/web_address.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace saker::hub {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kMaxRedirects = 5;
// Attempts in a row that bring less than kProgress bytes.
constexpr int kMaxFailures = 6;
// Attempts before anything has answered: nobody should wait for a network that is not there.
constexpr int kMaxUnconnected = 2;
constexpr long kFirstConnectSeconds = 5;
constexpr std::uintmax_t kProgress = std::uintmax_t{64} << 10;
constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{30'000};
// We give up if a server wants a longer pause.
constexpr std::chrono::seconds kLongestRetryAfter{300};
constexpr std::size_t kMaxHeader = 8192;
constexpr std::size_t kMaxUnread = std::size_t{64} << 10;
constexpr long kBuffer = 512L << 10;
constexpr std::array<std::string_view, 10> kHeaders{
    "content-length",
    "content-range",
    "etag",
    "link",
    "location",
    "x-error-code",
    "x-error-message",
    "x-linked-etag",
    "x-linked-size",
    "x-repo-commit",
};

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// The first byte of a 206's range: "bytes 100-199/200".
std::optional<std::uintmax_t> range_begin(std::string_view range) {
  constexpr std::string_view kUnit = "bytes ";
  std::uintmax_t begin = 0;
  if (!range.starts_with(kUnit)) {
    return std::nullopt;
  }
  range.remove_prefix(kUnit.size());
  const auto [end, failed] = std::from_chars(range.data(), range.data() + range.size(), begin);
  return failed == std::errc() && end != range.data() + range.size() && *end == '-'
             ? std::optional(begin)
             : std::nullopt;
}

// True for failures that another attempt may not meet.
bool is_passing_failure(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
      return true;
    default:
      return false;
  }
}

// libcurl's message, or a better one if libcurl's would mislead.
const char* failure(CURLcode code, const char* message) {
  switch (code) {
    case CURLE_OUT_OF_MEMORY:
      return "a line in the head of the hub's answer is too long, or memory is short";
    case CURLE_BAD_FUNCTION_ARGUMENT:
      return "a line in the head of the hub's answer is malformed";
    default:
      return *message != '\0' ? message : curl_easy_strerror(code);
  }
}

milliseconds pause_after(int failures) {
  static thread_local std::minstd_rand random{std::random_device{}()};
  const milliseconds pause =
      std::min(kFirstPause * (1 << std::min(failures - 1, 10)), kLongestPause);
  // Between half and all of it, so that clients do not all return at once.
  return pause / 2 + milliseconds(random() % (pause.count() / 2 + 1));
}

// The certificates that other programs with libcurl or Python use; null: libcurl's own place.
const char* certificates() {
  constexpr std::array kPlaces{
      "/etc/ssl/certs/ca-certificates.crt",
      "/etc/pki/tls/certs/ca-bundle.crt",
      "/etc/ssl/ca-bundle.pem",
      "/etc/ssl/cert.pem"
  };
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    if (const char* file = std::getenv(name); file != nullptr && *file != '\0') {
      return file;
    }
  }
  // A libcurl that comes with us looks where the system that built it has them.
  const char* const usual = curl_version_info(CURLVERSION_NOW)->cainfo;
  if (usual == nullptr || ::access(usual, R_OK) == 0) {
    return nullptr;
  }
  for (const char* place : kPlaces) {
    if (::access(place, R_OK) == 0) {
      return place;
    }
  }
  return nullptr;
}

using HeaderList = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

void add_header(HeaderList& list, const std::string& header) {
  // The list's head does not change once there is one.
  curl_slist* head = curl_slist_append(list.get(), header.c_str());
  require(head != nullptr, ErrorCode::kCapacity, "out of memory");
  if (list == nullptr) {
    list.reset(head);
  }
}

}  // namespace

std::string_view ResponseHead::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

HttpGet::HttpGet(
    const FetcherOptions& options,
    Contact& contact,
    const std::string& path,
    std::string what,
    Receiver& receiver
)
    : options_(options),
      contact_(contact),
      origin_(*origin_of(options.endpoint)),
      first_address_(options.endpoint + path),
      address_(first_address_),
      what_(std::move(what)),
      receiver_(receiver),
      easy_(nullptr, curl_easy_cleanup),
      headers_(nullptr, curl_slist_free_all) {}

void HttpGet::begin() {
  head_ = {};
  error_ = nullptr;
  message_.fill('\0');
  unread_ = 0;
  from_ = receiver_.have();
  headers_.reset();
  add_header(headers_, "Accept-Encoding: identity");
  if (!options_.token.empty() && at_endpoint()) {
    add_header(headers_, "Authorization: Bearer " + options_.token);
  }
  // A new handle per request, since connections stay with the fetcher. In libcurl 7.83 to 8.2 a
  // handle's second request writes to freed headers of its first, which a malicious server can
  // provoke.
  easy_.reset(curl_easy_init());
  CURL* const easy = easy_.get();
  require(easy != nullptr, ErrorCode::kCapacity, "libcurl: out of memory");
  const auto timeout = static_cast<long>(options_.timeout.count());
  curl_easy_setopt(easy, CURLOPT_URL, address_.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, origin_.scheme == "https" ? "https" : "http,https");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
  curl_easy_setopt(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "saker/" SAKER_VERSION);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(
      easy,
      CURLOPT_CONNECTTIMEOUT,
      contact_.made ? timeout : std::min(timeout, kFirstConnectSeconds)
  );
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kMinBytesPerSecond);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, timeout);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kBuffer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, message_.data());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  const auto wanted = receiver_.wanted_end();
  if (wanted) {
    curl_easy_setopt(easy, CURLOPT_RANGE, fmt::format("{}-{}", from_, *wanted - 1).c_str());
  } else if (from_ > 0) {
    curl_easy_setopt(easy, CURLOPT_RANGE, fmt::format("{}-", from_).c_str());
  }
  if (!options_.http_proxy.empty() && origin_of(address_)->scheme == "http") {
    curl_easy_setopt(easy, CURLOPT_PROXY, options_.http_proxy.c_str());
  }
  if (const char* file = certificates()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, file);
  }
  running_ = true;
}

std::size_t HttpGet::take_header(char* text, std::size_t /*size*/, std::size_t count, void* get) {
  auto& self = *static_cast<HttpGet*>(get);
  try {
    self.header_line({text, count});
    return count;
  } catch (...) {
    self.error_ = std::current_exception();
    return 0;
  }
}

std::size_t HttpGet::take_body(char* bytes, std::size_t /*size*/, std::size_t count, void* get) {
  auto& self = *static_cast<HttpGet*>(get);
  if (!self.has_body()) {
    // Bodies of refusals and redirects are not read; draining a short one keeps the connection.
    self.unread_ += count;
    return self.unread_ <= kMaxUnread ? count : 0;
  }
  try {
    std::size_t taken = count;
    if (const auto end = self.receiver_.wanted_end()) {
      taken = std::min<std::uintmax_t>(count, *end - self.receiver_.have());
    }
    self.receiver_.write(std::as_bytes(std::span(bytes, taken)));
    return taken;  // Less than `count` ends the transfer.
  } catch (...) {
    self.error_ = std::current_exception();
    return 0;
  }
}

void HttpGet::header_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    contact_.made = true;
    head_ = {};
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view status = trim(line.substr(space));
    std::from_chars(status.data(), status.data() + status.size(), head_.status);
    return;
  }
  // As libcurl does: the body follows, whatever else is in the line.
  if (line.starts_with('\r') || line.starts_with('\n')) {
    head_complete();
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || line.size() > kMaxHeader) {
    return;
  }
  const std::string name = ascii_lower(line.substr(0, colon));
  if (std::find(kHeaders.begin(), kHeaders.end(), name) != kHeaders.end()) {
    head_.headers[name] = trim(line.substr(colon + 1));
  }
}

void HttpGet::head_complete() {
  if (is_redirect(head_.status) && at_endpoint()) {
    const auto next = resolve_location(address_, head_.header("location"));
    if (next && origin_of(*next) != origin_) {
      receiver_.check(head_);
    }
  }
  if (!has_body()) {
    return;
  }
  if (at_endpoint()) {
    receiver_.check(head_);
  }
  if (head_.status == 200) {
    receiver_.begin(0);
    return;
  }
  const std::string_view range = head_.header("content-range");
  require(
      range_begin(range) == from_,
      ErrorCode::kCorruptData,
      "{}: asked for bytes from {} on, got the range {}",
      what_,
      from_,
      quote(range)
  );
  receiver_.begin(from_);
}

bool HttpGet::end(CURLcode code) {
  running_ = false;
  if (error_) {
    std::rethrow_exception(error_);
  }
  if (is_redirect(head_.status)) {
    redirect();
    return false;
  }
  // We end a transfer that brings more than was asked for.
  const bool is_enough = code == CURLE_WRITE_ERROR && receiver_.wanted_end().has_value();
  if (has_body() && (code == CURLE_OK || is_enough) && receiver_.is_complete()) {
    return true;
  }
  curl_off_t retry_after = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &retry_after);
  if (head_.status == 416 && from_ > 0) {
    receiver_.begin(0);
    retry("the part that is there has no place in the file", {});
  } else if (is_passing(head_.status)) {
    retry(fmt::format("HTTP {}", head_.status), std::chrono::seconds(retry_after));
  } else if (head_.status >= 400) {
    throw_response_error(head_, what_, !options_.token.empty());
  } else if (is_unconnected(code)) {
    retry_connecting(failure(code, message_.data()));
  } else if (code == CURLE_OK || is_passing_failure(code)) {
    retry(code == CURLE_OK ? "the file is cut" : failure(code, message_.data()), {});
  } else {
    throw Error(
        ErrorCode::kUnsupported, fmt::format("{}: {}", what_, failure(code, message_.data()))
    );
  }
  return false;
}

void HttpGet::redirect() {
  const auto next = resolve_location(address_, head_.header("location"));
  const auto origin = next ? origin_of(*next) : std::nullopt;
  require(
      origin && (origin->scheme == "https" || origin_.scheme == "http"),
      ErrorCode::kCorruptData,
      "{}: redirected to {}, expected an {} address",
      what_,
      quote(without_user(head_.header("location"))),
      origin_.scheme
  );
  require(
      ++redirects_ <= kMaxRedirects,
      ErrorCode::kCorruptData,
      "{}: redirected more than {} times",
      what_,
      kMaxRedirects
  );
  address_ = *next;
  due_ = {};
}

bool HttpGet::is_unconnected(CURLcode code) const {
  curl_off_t connected = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_CONNECT_TIME_T, &connected);
  return !contact_.made &&
         (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
          code == CURLE_COULDNT_CONNECT || (code == CURLE_OPERATION_TIMEDOUT && connected == 0));
}

void HttpGet::retry_connecting(const std::string& reason) {
  if (++unconnected_ >= kMaxUnconnected) {
    throw Error(
        ErrorCode::kCapacity,
        fmt::format(
            "{}: {} can't be reached: {}; is this machine offline?", what_, origin_.host, reason
        )
    );
  }
  retry(reason, {});
}

void HttpGet::retry(const std::string& reason, std::chrono::seconds retry_after) {
  // Bytes that came before and come again are no progress.
  const bool progressed = receiver_.have() >= furthest_ + kProgress;
  furthest_ = progressed ? receiver_.have() : furthest_;
  failures_ = progressed ? 1 : failures_ + 1;
  last_failure_ = reason;
  redirects_ = 0;
  address_ = first_address_;
  if (failures_ >= kMaxFailures || retry_after > kLongestRetryAfter) {
    throw Error(
        ErrorCode::kCapacity,
        fmt::format(
            "{}: {}; {}",
            what_,
            reason,
            retry_after.count() > 0
                ? fmt::format("the hub asks to come back in {} s", retry_after.count())
                : fmt::format("gave up after {} attempts, try again later", failures_)
        )
    );
  }
  due_ = Clock::now() + std::max<milliseconds>(pause_after(failures_), retry_after);
  if (options_.retrying) {
    options_.retrying(fmt::format("{}: {}", what_, reason));
  }
}

}  // namespace saker::hub
