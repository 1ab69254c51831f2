// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests and responses of HTTP as plain values.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::server::http {

// A header's name and value.
using Header = std::pair<std::string, std::string>;

struct Request {
  std::string method;           // "GET"
  std::string path;             // Percent-decoded, without the query.
  std::string query;            // After the '?', as it was sent.
  std::vector<Header> headers;  // In order, as they were sent.
  std::string body;
  int minor_version = 1;    // HTTP/1.0 or HTTP/1.1.
  bool keep_alive = true;   // The client wants to send another request.
  bool is_loopback = true;  // The client is on this machine.

  // The first header with this name in any case; empty if there is none.
  std::string_view header(std::string_view name) const;
  // Number of headers with this name in any case.
  int count(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers = {};
  std::string body = {};
};

// True for names that are equal without regard to the case of ASCII letters.
bool same_name(std::string_view left, std::string_view right);

// True if a client's text may be the value of a response's header: printable ASCII without line
// ends.
bool is_header_value(std::string_view text);

}  // namespace saker::server::http
