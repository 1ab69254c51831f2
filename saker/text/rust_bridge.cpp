// SPDX-License-Identifier: Apache-2.0
#include "saker/text/rust_bridge.h"

#include <fmt/format.h>

#include <algorithm>

namespace saker::text {

std::string take_string(SakerRsBytes bytes) {
  const std::unique_ptr<SakerRsBytes, void (*)(SakerRsBytes*)> owner(
      &bytes, [](SakerRsBytes* owned) { saker_rs_bytes_free(*owned); }
  );
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

void check_rust(bool ok, SakerRsBytes error, ErrorCode code, std::string_view what) {
  if (ok) {
    return;
  }
  std::string text = take_string(error);
  if (text.empty() || text == kSakerRsNoMemory) {
    throw Error(ErrorCode::kCapacity, fmt::format("{}: {}", what, kSakerRsNoMemory));
  }
  // A template may raise any text; control characters would break the line or the terminal.
  std::ranges::replace_if(text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  throw Error(code, fmt::format("{}: {}", what, text));
}

}  // namespace saker::text
