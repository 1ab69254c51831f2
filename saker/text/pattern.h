// SPDX-License-Identifier: Apache-2.0
#pragma once

// A regular expression (https://docs.rs/regex, which is Python's syntax without look-around and
// references back). Matching takes time linear in the text. Immutable; safe to use from any thread.

#include <memory>
#include <string_view>

struct SakerRsPattern;

namespace saker::text {

class Pattern {
 public:
  // Throws kUnsupported with what is wrong for patterns that aren't of this kind, or that take more
  // than a megabyte; `what` names the source in messages.
  Pattern(std::string_view pattern, std::string_view what);

  // Whether it matches somewhere in the text; text that is no UTF-8 never matches.
  bool matches(std::string_view text) const;

 private:
  std::shared_ptr<const SakerRsPattern> rust_;
};

}  // namespace saker::text
