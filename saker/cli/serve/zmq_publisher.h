// SPDX-License-Identifier: Apache-2.0
#pragma once

// A PUB socket of ZeroMQ. The library is loaded when a socket is wanted: few servers need one, and
// its licence is not one of those that we link (docs/adr/0093).

#include <cstdint>
#include <memory>
#include <string>

namespace saker::cli {

class ZmqPublisher {
 public:
  // Listens at an endpoint such as "tcp://*:5557". Throws kUnsupported without the library, and
  // kInvalidArgument for an endpoint that can't be had.
  explicit ZmqPublisher(const std::string& endpoint);
  ZmqPublisher(const ZmqPublisher&) = delete;
  ZmqPublisher& operator=(const ZmqPublisher&) = delete;
  ~ZmqPublisher();

  // The endpoint, with the port that the system chose for "tcp://127.0.0.1:*".
  std::string endpoint() const;

  // Three frames: topic, the number as 8 bytes, most significant first, and the body. Subscribers
  // that are too slow miss it. One thread at a time.
  void send(const std::string& topic, std::uint64_t number, const std::string& body);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saker::cli
