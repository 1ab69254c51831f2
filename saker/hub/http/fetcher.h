// SPDX-License-Identifier: Apache-2.0
#pragma once

// HTTP GETs from the hub, any number at a time on the caller's thread (libcurl's multi interface).
//
// Redirects are followed by hand. The token goes only to the endpoint's own origin (scheme, host
// and port), and never from https to http.
//
// Connections that drop or stall, and the statuses 408, 429 and 5xx, are tried again. Pauses grow,
// or are the server's Retry-After. Each attempt starts at the endpoint, since the addresses that it
// hands out expire. Until anything has answered, an unreachable server is given up after two
// attempts of at most five seconds: the machine is offline.
//
// Proxies are libcurl's (https_proxy, no_proxy, ...), and FetcherOptions::http_proxy.

#include "saker/hub/http/http_get.h"
#include "saker/hub/http/receiver.h"

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
  std::exception_ptr error;  // Null: the whole body arrived.
};

class Fetcher {
 public:
  // Throws kInvalidArgument unless the endpoint is an http or https address.
  explicit Fetcher(FetcherOptions options);
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;
  // Drops transfers under way without calling their receivers.
  ~Fetcher();

  // `path` is appended to the endpoint; it begins with a slash and is percent-encoded. `what` names
  // it in errors. The receiver must live until wait() hands it back or the fetcher ends.
  void start(std::string_view path, std::string_view what, Receiver& receiver);

  // Waits up to `limit` for something to happen and returns the GETs that have ended. Throws
  // kCancelled once a stop is requested.
  std::vector<Finished> wait(std::chrono::milliseconds limit);

  // Ends a wait early. Any thread.
  void wake() noexcept;

  // The whole body, of at most `limit` bytes, and its head. REQUIRES: no other transfer is under
  // way. Throws kCapacity once the texts of this fetcher have taken FetcherOptions::text_limit.
  struct Text {
    ResponseHead head;
    std::string body;
  };

  Text get(std::string_view path, std::string_view what, std::size_t limit);

  // Fetches all of them, `parallel` at a time. The deadline, errors and requirement are those of
  // get(); the first error ends it.
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
  // Throws if a text under way can't arrive in time.
  void require_time_for_texts() const;

  FetcherOptions options_;
  Contact contact_;
  std::unique_ptr<Multi> multi_;
  std::vector<std::unique_ptr<HttpGet>> gets_;
  std::chrono::steady_clock::time_point texts_until_;
};

}  // namespace saker::hub
