// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template over a small conversation: text, or a typed error, in bounded time.
// The language is ours, so a panic is a finding even though it stops at the border.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"

#include "tests/fuzz/input.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const saker::Json messages = {
      {{"role", "system"}, {"content", "Be brief."}},
      {{"role", "user"}, {"content", "caf\xc3\xa9 <|im_end|>"}},
  };
  try {
    const saker::text::ChatTemplate chat(std::string(reinterpret_cast<const char*>(data), size));
    static_cast<void>(chat.render(messages));
  } catch (const saker::Error& error) {  // The expected answer to most inputs.
    saker::fuzz::expect(
        std::string_view(error.what()).find("unexpected failure") == std::string_view::npos
    );
  }
  return 0;
}
