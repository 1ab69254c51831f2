// SPDX-License-Identifier: Apache-2.0
#pragma once

// A connection: reads requests one after the other, has them answered, and sends the answers.
// A read is pending all the time, so that a client that goes away is seen at once. Idle connections
// hold no buffers. All members run on the server's thread.

#include "saker/server/http/exchange.h"
#include "saker/server/http/limits.h"
#include "saker/server/http/request_reader.h"
#include "saker/server/http/tls.h"

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace saker::server::http {

class Connection;

// Writes the answer to a request that can't be read or taken.
using Refusal = std::function<Response(const BadRequest& bad)>;

// Parts of a server that its connections share. Used on the server's thread only.
struct Shared {
  Limits limits;
  Handler handler;
  Refusal refusal;
  boost::asio::thread_pool& workers;  // Handlers run here.
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections = {};
  std::size_t answering = 0;   // Requests that are being answered.
  std::size_t body_bytes = 0;  // Bodies of requests that are read or answered.
  bool is_closing = false;     // Connections close after their answer.
  std::array<char, kSliceBytes> buffer = {};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // Without a `tls` bytes are sent as they are. REQUIRES: `shared` outlives it.
  Connection(
      Socket socket, Shared& shared, bool is_loopback, std::unique_ptr<TlsSession> tls = nullptr
  );
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void start();
  // Closes at once if no request is being answered, else after the answer.
  void close_after_answer();
  void close();

 private:
  class OneExchange;

  void wait_readable();
  void read_some();
  void take(std::string_view bytes);
  void take_encrypted(std::string_view bytes);
  void handle(RequestReader::Stage stage);
  void begin_answer();
  void refuse(const BadRequest& bad);

  void respond(Response response);
  void begin_stream(const Response& head);
  void add(std::string_view piece);
  void end();
  void send();
  void sent(std::size_t bytes);
  void end_answer();
  void linger();

  void set_timer(std::chrono::milliseconds time);
  void set_write_timer();
  void set_ping_timer();
  void count_bytes(std::size_t now);

  bool is_current(std::size_t serial) const { return serial == serial_ && answering_ && !closed_; }

  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
  Shared& shared_;
  bool is_loopback_;
  RequestReader reader_;
  boost::asio::steady_timer timer_;        // For reading.
  boost::asio::steady_timer write_timer_;  // For sending.
  boost::asio::steady_timer ping_timer_;

  std::size_t serial_ = 0;  // Number of the request that is answered, or was last.
  bool answering_ = false;
  bool in_head_ = false;  // The timer of a head runs.
  bool waiting_ = false;  // For something to read.
  bool closed_ = false;
  bool lingering_ = false;  // Reads only to let the client see the answer.
  bool keep_alive_ = true;
  bool head_only_ = false;  // The request was HEAD.
  int minor_version_ = 1;
  std::string pending_;            // Came while a request was answered.
  std::size_t counted_bytes_ = 0;  // In Shared::body_bytes.

  bool started_ = false;  // The answer's head is written.
  bool chunked_ = false;
  bool ended_ = false;  // The answer is complete; bytes may wait to be sent.
  bool sending_now_ = false;
  std::string out_;       // Waits.
  std::string sending_;   // Is being sent,
  std::size_t sent_ = 0;  // up to here.
  // Bytes that wait; read by any thread.
  std::shared_ptr<std::atomic<std::size_t>> unsent_ = std::make_shared<std::atomic<std::size_t>>();
  std::string ping_;
  std::function<void()> on_room_;
  std::function<void()> on_gone_;
};

}  // namespace saker::server::http
