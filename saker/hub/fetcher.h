// SPDX-License-Identifier: Apache-2.0
#pragma once

// HTTP GETs from the hub, any number at a time on the caller's thread (libcurl's multi interface).
//
// Redirects are followed by hand: the token goes to the endpoint's own origin (scheme, host and
// port) only, and never from https to http. Connections that drop or stall, and the statuses 408,
// 429 and 5xx, are tried again with growing pauses or after the server's Retry-After, each time
// from the endpoint on, since addresses that it hands out expire. Before anything has answered,
// what can't be reached is given up after two attempts of five seconds at most: the machine is
// offline. Proxies are libcurl's (https_proxy, no_proxy, ...), and FetcherOptions::http_proxy.

#include "saker/hub/http_get.h"
#include "saker/hub/receiver.h"

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

// A GET that has ended.
struct Finished {
  Receiver* receiver = nullptr;
  std::exception_ptr error;  // Null: all of it came.
};

class Fetcher {
 public:
  // Throws kInvalidArgument for an endpoint that is no http or https address.
  explicit Fetcher(FetcherOptions options);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  // Drops what is under way; receivers are not called.
  ~Fetcher();

  // `path` follows the endpoint, beginning with a slash, percent-encoded; `what` names it in
  // errors. The receiver must live until it is handed back or the fetcher ends.
  void start(std::string_view path, std::string_view what, Receiver& receiver);

  // Waits up to `limit` for something to happen, and hands back what has ended. Throws kCancelled
  // once a stop is requested.
  std::vector<Finished> wait(std::chrono::milliseconds limit);

  // Ends a wait early; from any thread.
  void wake() noexcept;

  // The whole body of at most `limit` bytes, and its head. Only while nothing else is under way.
  // Throws kCapacity once the texts of this fetcher have taken FetcherOptions::text_limit.
  struct Text {
    ResponseHead head;
    std::string body;
  };

  Text get(std::string_view path, std::string_view what, std::size_t limit);

  // Some at a time, until all of them have come. The same deadline; throws as get, and the first
  // error of one of them. Only while nothing else is under way.
  struct Wanted {
    std::string path;
    std::string what;
    Receiver* receiver = nullptr;
  };

  void get_all(std::span<const Wanted> wanted, int parallel);

 private:
  struct Multi;

  void start_due();
  std::vector<Finished> take_results();
  void drop_all();
  // Throws where a text that is under way can't come in time.
  void require_time_for_texts() const;

  FetcherOptions options_;
  Contact contact_;
  std::unique_ptr<Multi> multi_;
  std::vector<std::unique_ptr<HttpGet>> gets_;
  std::chrono::steady_clock::time_point texts_until_;
};

}  // namespace saker::hub
