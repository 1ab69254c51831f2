// SPDX-License-Identifier: Apache-2.0
#pragma once

// A regular expression (https://docs.rs/regex: Python's syntax without look-around and
// backreferences). Matching takes time linear in the text. Immutable; safe to use from any thread.

#include <memory>
#include <string_view>

struct SakerRsPattern;

namespace saker::text {

class Pattern {
 public:
  // Throws kUnsupported, with the reason, for other patterns and for patterns that compile to more
  // than a megabyte. `what` names the source in messages.
  Pattern(std::string_view pattern, std::string_view what);

  // True if it matches somewhere in the text; invalid UTF-8 never matches.
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const SakerRsPattern> rust_;
};

}  // namespace saker::text
