// SPDX-License-Identifier: Apache-2.0
#pragma once

// One request and the way to answer it. Members may be called from any thread and take effect in
// order; what they call back runs on the server's thread and must not block. After the client has
// gone they do nothing. An exchange that is dropped without an answer is answered with status 500.

#include "saker/server/http/caller.h"
#include "saker/server/http/message.h"

#include <functional>
#include <memory>
#include <string>

namespace saker::server::http {

class Exchange {
 public:
  Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;
  virtual const Caller& caller() const = 0;

  // Takes what the answer took; the last report counts.
  virtual void report(Report report) = 0;

  // Answers with the whole response.
  virtual void respond(Response response) = 0;

  // Starts an answer that comes in pieces; the response's body is not used.
  virtual void start(Response head) = 0;
  // Adds a piece. REQUIRES: start() came before, finish() did not.
  virtual void write(std::string piece) = 0;
  virtual void finish() = 0;
  // True if few bytes wait to be sent. Producers that heed it take constant memory.
  virtual bool has_room() const = 0;
  // Called when there is room again.
  virtual void on_room(std::function<void()> call) = 0;
  // A piece that is sent when a started answer has been silent for a while; empty: none.
  virtual void set_ping(std::string piece) = 0;

  // Called once if the client goes away before the answer has ended.
  virtual void on_gone(std::function<void()> call) = 0;
  // Runs work on the server's thread.
  virtual void post(std::function<void()> work) = 0;
  // Calls `call` on the server's thread after this many milliseconds, unless the client has gone.
  virtual void after(int milliseconds, std::function<void()> call) = 0;
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace saker::server::http
