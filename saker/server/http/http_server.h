// SPDX-License-Identifier: Apache-2.0
#pragma once

// A server of HTTP/1.1: one thread for all connections, worker threads for handlers.

#include "saker/server/http/exchange.h"
#include "saker/server/http/limits.h"
#include "saker/server/http/request_reader.h"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace saker::server::http {

struct ServerOptions {
  std::string host = "127.0.0.1";  // An address, a name, "unix:PATH", or "systemd": its socket.
  int port = 8080;                 // 0: any free one.
  int workers = 8;                 // Threads for handlers.
  Limits limits = {};
  // Files in PEM; both or none. Connections then speak TLS. They are read again when they change.
  std::filesystem::path certificate = {};
  std::filesystem::path certificate_key = {};
};

class HttpServer {
 public:
  // Writes the answer to a request that can't be read or taken.
  using Refusal = std::function<Response(const BadRequest& bad)>;

  // Listens from now on. `handler` is called on worker threads, several at a time, and may block.
  // Throws kInvalidArgument for an address or a certificate that can't be had.
  HttpServer(const ServerOptions& options, Handler handler, Refusal refusal);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  // Closes all connections and waits for handlers.
  ~HttpServer();

  // The port; 0 for a unix socket.
  int port() const;
  // True if only this machine can connect.
  bool is_loopback() const;
  // "http://127.0.0.1:8080", "https://…" or "unix:PATH".
  std::string address() const;

  // Serves until `stop`.
  void run();

  // The members below may be called from any thread.
  void stop();
  // Takes no connection from now on, and closes each after its answer.
  void close_after_answers();
  // Requests that are being answered. On the server's thread.
  std::size_t answering() const;
  // Runs work on the server's thread, after this many milliseconds.
  void after(int milliseconds, std::function<void()> work);
  // Calls `call` on the server's thread at each SIGINT and SIGTERM, which end nothing by themselves
  // from now on.
  void on_signal(std::function<void()> call);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saker::server::http
