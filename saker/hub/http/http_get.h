// SPDX-License-Identifier: Apache-2.0
#pragma once

// One GET from the hub over all its redirects and attempts. A Fetcher owns it and runs the
// transfers.

#include "saker/hub/http/receiver.h"
#include "saker/hub/http/web_address.h"

#include <curl/curl.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace saker::hub {

// A slower transfer counts as stalled.
inline constexpr long kMinBytesPerSecond = 1024;

struct FetcherOptions {
  std::string endpoint;              // Without a slash at its end.
  std::string token;                 // Empty: none.
  std::chrono::seconds timeout{10};  // For connecting, and for speeds below kMinBytesPerSecond.
  // For all texts of a fetcher together, retries included.
  std::chrono::milliseconds text_limit{60'000};
  std::string http_proxy;  // For http addresses. Empty: libcurl chooses.
  std::stop_token stop;
  // Called before each retry, with what failed and why.
  std::function<void(const std::string& failure)> retrying = {};
};

// State that all GETs of a fetcher share.
struct Contact {
  bool made = false;  // Something has answered: from now on failures to connect may be temporary.
};

class HttpGet {
 public:
  HttpGet(
      const FetcherOptions& options,
      Contact& contact,
      const std::string& path,
      std::string what,
      Receiver& receiver
  );

  Receiver& receiver() const { return receiver_; }

  const std::string& what() const { return what_; }

  // The handle of the latest request.
  CURL* easy() const { return easy_.get(); }

  bool is_due(std::chrono::steady_clock::time_point now) const { return !running_ && now >= due_; }

  bool is_running() const { return running_; }

  std::chrono::steady_clock::time_point due() const { return due_; }

  // Why the last attempt failed; empty before the first failure.
  const std::string& last_failure() const { return last_failure_; }

  // Prepares the request to address_, with a new handle.
  void begin();

  // Call after the transfer. True if the GET has ended, false if it continues at due(). Throws the
  // GET's error.
  bool end(CURLcode code);

 private:
  static std::size_t take_header(char* text, std::size_t size, std::size_t count, void* get);
  static std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* get);
  void header_line(std::string_view line);
  void head_complete();
  // Follows a redirect, or throws.
  void redirect();
  // True if the transfer ended before it reached anything that could answer.
  bool is_unconnected(CURLcode code) const;
  // Plans the next attempt after a failure to connect, or throws.
  void retry_connecting(const std::string& reason);
  // Plans the next attempt, or throws.
  void retry(const std::string& reason, std::chrono::seconds retry_after);

  bool at_endpoint() const { return origin_of(address_) == origin_; }

  bool has_body() const { return head_.status == 200 || head_.status == 206; }

  const FetcherOptions& options_;
  Contact& contact_;
  const Origin origin_;
  const std::string first_address_;
  std::string address_;
  const std::string what_;
  Receiver& receiver_;
  std::unique_ptr<CURL, void (*)(CURL*)> easy_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_;
  std::array<char, CURL_ERROR_SIZE> message_{};
  ResponseHead head_;
  std::exception_ptr error_;  // Thrown inside a callback.
  std::uintmax_t from_ = 0;
  std::uintmax_t furthest_ = 0;  // Offset in the body at the last progress.
  std::size_t unread_ = 0;       // Bytes of this answer's body that were dropped.
  std::string last_failure_;
  int redirects_ = 0;
  int failures_ = 0;
  int unconnected_ = 0;  // Consecutive attempts that made no connection.
  bool running_ = false;
  std::chrono::steady_clock::time_point due_{};
};

}  // namespace saker::hub
