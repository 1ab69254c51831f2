// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the calls between a format's markers, byte by byte. A reader begins behind the opening
// marker and ends where calls end. One thread at a time.

#include "saker/text/output/argument_types.h"
#include "saker/text/output/output_format.h"
#include "saker/text/output/tool.h"
#include "saker/text/output_event.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

// Takes the calls that a reader finds.
class CallSink {
 public:
  virtual ~CallSink() = default;

  // The declared tool of this name; null without one.
  virtual const Tool* tool(std::string_view name) const = 0;
  // A call of a declared tool begins. An empty id is replaced.
  virtual void open(const std::string& name, const std::string& id) = 0;
  virtual void arguments(std::string_view text) = 0;
  // The call is whole.
  virtual void close() = 0;
};

class CallReader {
 public:
  enum class Reading : std::uint8_t {
    kMore,
    kEnd,        // This byte ended the calls.
    kEndBefore,  // The calls ended before this byte, which was not taken.
    kFailed,     // Since the last whole call there is none.
  };

  virtual ~CallReader() = default;

  // REQUIRES: no end so far.
  virtual Reading feed(char byte) = 0;
  // The answer ends here by itself: closes an open call whose arguments are whole. Returns false if
  // there is a beginning that is no call.
  virtual bool finish() = 0;
};

// `format` and `sink` outlive the reader. `is_call`: `call_open` was met instead of `open`.
std::unique_ptr<CallReader> make_call_reader(
    const CallFormat& format, CallSink& sink, bool is_call
);
std::unique_ptr<CallReader> make_objects_reader(const CallFormat& format, CallSink& sink);
std::unique_ptr<CallReader> make_named_reader(
    const CallFormat& format, CallSink& sink, bool is_call
);
std::unique_ptr<CallReader> make_tagged_reader(
    const CallFormat& format, CallSink& sink, bool is_call
);

// A marker without the white space around it, which is free.
std::string_view trimmed(std::string_view text);

// Matches one of several markers, byte by byte. Empty markers never match.
class MarkerChoice {
 public:
  enum class Match : std::uint8_t { kMore, kWhole, kNone };

  explicit MarkerChoice(std::vector<std::string_view> markers);

  // White space before a marker is skipped.
  Match feed(char byte);
  // The marker that matched, by its index; the choice starts afresh.
  std::size_t take();

  bool has_begun() const { return !held_.empty(); }

  bool is_empty() const;

 private:
  std::vector<std::string_view> markers_;
  std::string held_;
};

// A call's name and id as a model writes them.
struct WrittenName {
  std::string name;
  std::string id;
};

WrittenName read_name(std::string_view text, const CallFormat& format);

inline constexpr std::size_t kMaxName = 256;

}  // namespace saker::text
