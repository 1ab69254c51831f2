// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who takes what a GET brings.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::hub {

// What a response begins with.
struct ResponseHead {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers;  // Those we read, by lower-case name.

  // Empty where it is absent.
  std::string_view header(std::string_view name) const;
};

// Takes the body of one GET. What its members throw ends that GET.
class Receiver {
 public:
  Receiver() = default;
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  virtual ~Receiver() = default;

  // Bytes that are there already: those after them are asked for.
  virtual std::uintmax_t have() const = 0;

  // Only the bytes before this one are wanted; none: all. A server that does not know ranges sends
  // more, which write() gets no part of.
  virtual std::optional<std::uintmax_t> wanted_end() const { return std::nullopt; }

  // What the endpoint itself answered: the file, or the redirect to where it lies.
  virtual void check(const ResponseHead& head) = 0;
  // The body begins at `offset`: 0 or have().
  virtual void begin(std::uintmax_t offset) = 0;
  virtual void write(std::span<const std::byte> bytes) = 0;
  // The connection has ended; false: the body is cut.
  virtual bool is_complete() const = 0;
};

}  // namespace saker::hub
