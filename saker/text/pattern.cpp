// SPDX-License-Identifier: Apache-2.0
#include "saker/text/pattern.h"

#include "saker/base/error.h"
#include "saker/text/rust_bridge.h"

namespace saker::text {

Pattern::Pattern(std::string_view pattern, std::string_view what) {
  SakerRsPattern* rust = nullptr;
  SakerRsBytes error{};
  const bool ok = saker_rs_pattern_new(rust_data(pattern), pattern.size(), &rust, &error);
  check_rust(ok, error, ErrorCode::kUnsupported, what);
  rust_ = std::shared_ptr<const SakerRsPattern>(rust, [](const SakerRsPattern* owned) {
    saker_rs_pattern_free(const_cast<SakerRsPattern*>(owned));
  });
}

bool Pattern::matches(std::string_view text) const {
  bool matches = false;
  SakerRsBytes error{};
  const bool ok =
      saker_rs_pattern_matches(rust_.get(), rust_data(text), text.size(), &matches, &error);
  check_rust(ok, error, ErrorCode::kInternal, "a pattern");
  return matches;
}

}  // namespace saker::text
