// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/request_reader.h"

#include "saker/server/http/query.h"

#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <fmt/format.h>

#include <limits>
#include <sstream>
#include <utility>

namespace saker::server::http {
namespace {

namespace beast = boost::beast;
namespace asio = boost::asio;

constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string text_of(beast::string_view text) {
  return {text.data(), text.size()};
}

// The reason why two readers could understand this head differently; empty if they can't.
std::string_view ambiguity(std::string_view head) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const char next = i + 1 < head.size() ? head[i + 1] : '\0';
    const char before = i > 0 ? head[i - 1] : '\0';
    if (head[i] == '\0') {
      return "a NUL byte in the head";
    }
    if ((head[i] == '\r') != (next == '\n') && head[i] == '\r') {
      return "a lone carriage return in the head";
    }
    if (head[i] == '\n' && before != '\r') {
      return "a lone line feed in the head";
    }
    if (head[i] == '\n' && (next == ' ' || next == '\t')) {
      return "a folded header";
    }
  }
  return {};
}

}  // namespace

class RequestReader::Parser : public beast::http::request_parser<beast::http::string_body> {};

RequestReader::RequestReader(const Limits& limits) : limits_(limits) {}

RequestReader::~RequestReader() = default;

std::size_t RequestReader::held_bytes() const {
  return buffer_.size() + (parser_ ? parser_->get().body().size() : 0);
}

bool RequestReader::wants_continue() {
  return std::exchange(wants_continue_, false);
}

RequestReader::Stage RequestReader::take(std::string_view bytes) {
  buffer_ += bytes;
  if (stage_ == Stage::kHead) {
    read_head();
  }
  if (stage_ == Stage::kBody) {
    read_body();
  }
  return stage_;
}

void RequestReader::fail(int status, std::string reason) {
  stage_ = Stage::kBad;
  bad_ = {status, std::move(reason)};
  buffer_.clear();
  buffer_.shrink_to_fit();
  parser_.reset();
}

void RequestReader::read_head() {
  // Line ends before a request are skipped, as RFC 9112 asks; there are few of them.
  if (scanned_ == 0 && buffer_.starts_with("\r\n")) {
    buffer_.erase(0, 2);
  }
  const std::size_t from = scanned_ < kHeadEnd.size() ? 0 : scanned_ - kHeadEnd.size();
  const std::size_t end = buffer_.find(kHeadEnd, from);
  scanned_ = buffer_.size();
  const std::size_t size = end == std::string::npos ? buffer_.size() : end + kHeadEnd.size();
  if (size > limits_.head_bytes) {
    return fail(431, fmt::format("the headers have more than {} bytes", limits_.head_bytes));
  }
  if (end == std::string::npos) {
    return;
  }
  if (const std::string_view found = ambiguity(std::string_view(buffer_).substr(0, end));
      !found.empty()) {
    return fail(400, std::string(found));
  }
  parser_ = std::make_unique<Parser>();
  parser_->header_limit(static_cast<std::uint32_t>(limits_.head_bytes));
  parser_->body_limit(limits_.body_bytes);
  parser_->eager(false);
  beast::error_code error;
  const std::size_t used = parser_->put(asio::buffer(buffer_.data(), size), error);
  if (error && error != beast::http::error::need_more) {
    return fail(
        error == beast::http::error::body_limit ? 413 : 400,
        error == beast::http::error::body_limit
            ? fmt::format("the body has more than {} bytes", limits_.body_bytes)
            : fmt::format("the head is no HTTP: {}", error.message())
    );
  }
  const auto& fields = parser_->get().base();
  const auto number_of = [&](beast::http::field name) { return fields.count(name); };
  if (!parser_->is_header_done()) {
    return fail(400, "the head is no HTTP");
  }
  if (number_of(beast::http::field::content_length) > 1 ||
      (number_of(beast::http::field::content_length) > 0 &&
       number_of(beast::http::field::transfer_encoding) > 0)) {
    return fail(400, "the length of the body is given twice");
  }
  const std::size_t encodings = number_of(beast::http::field::transfer_encoding);
  if (encodings > 0 &&
      (encodings > 1 || !parser_->chunked() ||
       !beast::iequals(fields[beast::http::field::transfer_encoding], "chunked"))) {
    return fail(501, "a Transfer-Encoding other than chunked");
  }
  if (number_of(beast::http::field::host) > 1 ||
      (fields.version() >= 11 && number_of(beast::http::field::host) == 0)) {
    return fail(400, "expected one Host header");
  }
  if (static_cast<std::size_t>(std::distance(fields.begin(), fields.end())) > limits_.headers) {
    return fail(431, fmt::format("there are more than {} headers", limits_.headers));
  }
  if (const auto length = parser_->content_length(); length && *length > limits_.body_bytes) {
    return fail(413, fmt::format("the body has more than {} bytes", limits_.body_bytes));
  }
  buffer_.erase(0, used);
  scanned_ = 0;
  wants_continue_ = beast::iequals(fields[beast::http::field::expect], "100-continue") &&
                    !parser_->is_done() && buffer_.empty();
  stage_ = Stage::kBody;
}

void RequestReader::read_body() {
  beast::error_code error;
  parser_->eager(true);
  while (!parser_->is_done() && !buffer_.empty()) {
    const std::size_t used = parser_->put(asio::buffer(buffer_), error);
    buffer_.erase(0, used);
    if (error == beast::http::error::need_more) {
      break;
    }
    if (error == beast::http::error::body_limit) {
      return fail(413, fmt::format("the body has more than {} bytes", limits_.body_bytes));
    }
    if (error) {
      return fail(400, fmt::format("the body is no HTTP: {}", error.message()));
    }
  }
  if (parser_->is_done()) {
    stage_ = Stage::kDone;
  } else if (buffer_.size() > limits_.head_bytes) {
    fail(400, "a chunk's head is too long");
  }
}

Request RequestReader::release() {
  auto message = parser_->release();
  parser_.reset();
  stage_ = Stage::kHead;
  scanned_ = 0;
  Request request;
  request.method = text_of(message.method_string());
  const std::string target = text_of(message.target());
  const std::size_t question = target.find('?');
  request.path = decoded_path(target.substr(0, question)).value_or("");
  request.query = question == std::string::npos ? "" : target.substr(question + 1);
  for (const auto& field : message.base()) {
    request.headers.emplace_back(text_of(field.name_string()), text_of(field.value()));
  }
  request.body = std::move(message.body());
  request.minor_version = message.version() == 11 ? 1 : 0;
  request.keep_alive = message.keep_alive();
  return request;
}

std::string response_head(
    const Response& response, std::size_t length, Framing framing, bool keep_alive
) {
  beast::http::response_header<> head;
  head.version(11);
  head.result(static_cast<unsigned>(response.status));
  if (!response.content_type.empty()) {
    head.set(beast::http::field::content_type, response.content_type);
  }
  for (const auto& [name, value] : response.headers) {
    if (is_header_value(name) && is_header_value(value)) {
      head.insert(name, value);
    }
  }
  if (framing == Framing::kChunked) {
    head.set(beast::http::field::transfer_encoding, "chunked");
  } else if (framing == Framing::kLength && response.status != 204 && response.status != 304) {
    head.set(beast::http::field::content_length, std::to_string(length));
  }
  head.set(beast::http::field::connection, keep_alive ? "keep-alive" : "close");
  std::ostringstream text;
  text << head;
  return std::move(text).str();
}

std::string chunk(std::string_view piece) {
  return beast::buffers_to_string(beast::http::make_chunk(asio::buffer(piece.data(), piece.size()))
  );
}

std::string last_chunk() {
  return beast::buffers_to_string(beast::http::make_chunk_last());
}

std::optional<std::string> decoded_path(std::string_view target) {
  // A proxy's form names the server first.
  if (const std::size_t scheme = target.find("://");
      scheme != std::string_view::npos && scheme < 8) {
    const std::size_t slash = target.find('/', scheme + 3);
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  return percent_decoded(target);
}

}  // namespace saker::server::http
