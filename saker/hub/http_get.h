// SPDX-License-Identifier: Apache-2.0
#pragma once

// One GET from the hub over all its redirects and attempts. Owned by a Fetcher, which runs the
// transfers.

#include "saker/hub/receiver.h"
#include "saker/hub/web_address.h"

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
  std::chrono::seconds timeout{10};  // For connecting, and below kMinBytesPerSecond.
  // For all texts of a fetcher together, with what is tried again.
  std::chrono::milliseconds text_limit{60'000};
  std::string http_proxy;  // For http addresses. Empty: libcurl's choice.
  std::stop_token stop;
  // Called before something is tried again, with what failed and why.
  std::function<void(const std::string& failure)> retrying = {};
};

// What the GETs of a fetcher share.
struct Contact {
  bool made = false;  // Something has answered: failures to connect may pass.
};

// One GET over all its redirects and attempts.
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

  // Of the latest request.
  CURL* easy() const { return easy_.get(); }

  bool is_due(std::chrono::steady_clock::time_point now) const { return !running_ && now >= due_; }

  bool is_running() const { return running_; }

  std::chrono::steady_clock::time_point due() const { return due_; }

  // Why the last attempt failed; empty before one did.
  const std::string& last_failure() const { return last_failure_; }

  // Prepares the request to address_, with a new handle.
  void begin();

  // After the transfer: true when the GET has ended, false when it goes on at due(). Throws what
  // it failed with.
  bool end(CURLcode code);

 private:
  static std::size_t take_header(char* text, std::size_t size, std::size_t count, void* get);
  static std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* get);
  void header_line(std::string_view line);
  void head_complete();
  // Follows a redirect, or throws.
  void redirect();
  // Whether the transfer ended before anything was there that could answer.
  bool is_unconnected(CURLcode code) const;
  // Plans the next attempt after one that ended so, or throws.
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
  std::uintmax_t furthest_ = 0;  // Of the body, when it last made progress.
  std::size_t unread_ = 0;       // Of this answer's body.
  std::string last_failure_;
  int redirects_ = 0;
  int failures_ = 0;
  int unconnected_ = 0;  // Attempts in a row that did not get as far as a connection.
  bool running_ = false;
  std::chrono::steady_clock::time_point due_{};
};

}  // namespace saker::hub
