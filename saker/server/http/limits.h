// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits of connections, so that no client can take a server's memory or wait for ever.

#include <chrono>
#include <cstddef>

namespace saker::server::http {

struct Limits {
  std::size_t head_bytes = std::size_t{64} << 10;  // Request line and headers.
  std::size_t headers = 128;                       // Number of headers.
  std::size_t body_bytes = std::size_t{32} << 20;
  std::size_t all_bodies = std::size_t{512}
                           << 20;               // Bodies of all requests that are read or answered.
  std::size_t connections = 10240;              // More are closed at once.
  std::size_t requests = 2048;                  // Answered at a time; more get 503.
  std::chrono::milliseconds head_time{10'000};  // From a request's first byte to its last header.
  std::chrono::milliseconds body_time{60'000};  // Between two reads of a body.
  std::chrono::milliseconds idle_time{75'000};  // Between two requests.
  // To send kSliceBytes: slower readers are dropped.
  std::chrono::milliseconds write_time{30'000};
  std::chrono::milliseconds linger_time{5'000};  // After an error, to read what the client sends.
  std::chrono::milliseconds ping_time{15'000};   // Without an event a stream sends its ping.
};

// Responses are sent in slices of at most this many bytes.
inline constexpr std::size_t kSliceBytes = std::size_t{64} << 10;

}  // namespace saker::server::http
