// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a generation for one exchange: reads the events of its streams on the server's thread and
// hands them to the dialect's encoder. It reads only while the client takes what was sent, so that
// an answer takes constant memory here. A client that goes away cancels it.

#include "saker/engine/stream.h"
#include "saker/server/http/exchange.h"
#include "saker/server/turns/api_error.h"
#include "saker/server/turns/served_model.h"

#include <memory>
#include <string>
#include <vector>

namespace saker::server {

// Makes a dialect's answer of the events. One thread.
class Encoder {
 public:
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  // The first bytes of a streamed answer.
  virtual std::string begin() { return {}; }

  // Takes an event, which is no Failure; adds the bytes that can be sent now to `out`.
  virtual void add(engine::Event event, std::string& out) = 0;

  // All choices have ended: the last bytes of a streamed answer, or the whole body.
  virtual std::string end() = 0;

  // The last bytes of a streamed answer that failed.
  virtual std::string failure(const ApiError& error) = 0;
};

// How an answer is sent.
struct Delivery {
  bool streams = false;
  http::Response head = {};  // For a stream its head; for a whole answer all but the body.
  std::string ping = {};     // For streams that are silent.
  // The response for a whole answer that failed.
  http::Response (*failed)(const ApiError& error) = nullptr;
};

// Answers the exchange with what the streams give. Choices of the second stream come after those of
// the first, and so on; each has `choices_each`.
void run_turn(
    const std::shared_ptr<http::Exchange>& exchange,
    const std::shared_ptr<const ServedModel>& model,
    std::vector<engine::Stream> streams,
    int choices_each,
    std::unique_ptr<Encoder> encoder,
    Delivery delivery
);

// Submits a request of the exchange's caller, who takes turns with others. Throws as Engine::submit
// does; a prompt that is too long for the context is a 400 with both counts.
engine::Stream submit(
    const http::Exchange& exchange, const ServedModel& model, engine::Request request
);

}  // namespace saker::server
