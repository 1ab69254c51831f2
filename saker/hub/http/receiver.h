// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface through which a GET hands over its response.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::hub {

// The status and headers of a response.
struct ResponseHead {
  int status = 0;
  // Only headers that we read, by lower-case name.
  std::map<std::string, std::string, std::less<>> headers;

  // Empty if the header is absent.
  std::string_view header(std::string_view name) const;
};

// Takes the body of one GET. An exception from a member ends that GET.
class Receiver {
 public:
  Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  virtual ~Receiver() = default;

  // Number of bytes that are there already; the GET asks for those after them.
  virtual std::uintmax_t have() const = 0;

  // The end of the range to request; empty: no end. A server that ignores ranges may send more;
  // write() does not get the excess.
  virtual std::optional<std::uintmax_t> wanted_end() const { return std::nullopt; }

  // The endpoint's own answer: the file, or a redirect to it.
  virtual void check(const ResponseHead& head) = 0;
  // The body begins at `offset`: 0 or have().
  virtual void begin(std::uintmax_t offset) = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
  // Called when the connection has ended; false means that the body is truncated.
  virtual bool is_complete() const = 0;
};

}  // namespace saker::hub
