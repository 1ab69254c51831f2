// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes to requests, and responses to bytes: the one place that names Boost.Beast. No sockets. One
// thread at a time.
//
// Requests that two readers could understand differently are refused: several Content-Length or
// Host headers, Content-Length beside Transfer-Encoding, folded headers, lone line ends, NUL.

#include "saker/server/http/limits.h"
#include "saker/server/http/message.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::server::http {

// A request that can't be read: the status and the reason for people.
struct BadRequest {
  int status = 400;
  std::string reason = {};
};

// Reads one request after the other from a connection's bytes.
class RequestReader {
 public:
  explicit RequestReader(const Limits& limits);
  ~RequestReader();

  // The place of a request in its bytes.
  enum class Stage { kHead, kBody, kDone, kBad };

  // Takes bytes; call it again with nothing to read a request that is already buffered.
  Stage take(std::string_view bytes);

  // The reason for kBad.
  const BadRequest& bad() const { return bad_; }

  // The request. REQUIRES: kDone. The reader starts with the next one.
  Request release();

  // Bytes of the current request's head have come.
  bool has_begun() const { return !buffer_.empty(); }

  // A request has begun and has not ended.
  bool is_reading() const { return stage_ == Stage::kBody || has_begun(); }

  // Bytes that are held: buffered ones, and the body's.
  std::size_t held_bytes() const;
  // True once for a head with "Expect: 100-continue": the client waits before it sends the body.
  bool wants_continue();

 private:
  class Parser;

  void read_head();
  void read_body();
  void fail(int status, std::string reason);

  const Limits& limits_;
  Stage stage_ = Stage::kHead;
  std::string buffer_;       // Bytes that are not read yet.
  std::size_t scanned_ = 0;  // Bytes of buffer_ without an end of a head.
  std::unique_ptr<Parser> parser_;
  bool wants_continue_ = false;
  BadRequest bad_;
};

// How the end of a response's body is marked.
enum class Framing { kLength, kChunked, kUntilClose };

// The status line and headers of a response. `keep_alive` false: says that the connection closes.
std::string response_head(
    const Response& response, std::size_t length, Framing framing, bool keep_alive
);
// One chunk of a chunked body. REQUIRES: not empty.
std::string chunk(std::string_view piece);
std::string last_chunk();

// The path of a request's target without percent-encoding; none if it is not well formed.
std::optional<std::string> decoded_path(std::string_view target);

}  // namespace saker::server::http
