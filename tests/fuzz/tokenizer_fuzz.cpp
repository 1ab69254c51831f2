// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, then a text and all its ids through it: results, or typed errors.
#include "saker/base/error.h"
#include "saker/text/detokenizer.h"
#include "saker/text/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view json(reinterpret_cast<const char*>(data), size);
    const auto tokenizer = saker::text::Tokenizer::parse(json, "input");
    const auto ids = tokenizer->encode("the caf\xc3\xa9 <s> 12\n \xf0\x9f\x98\x80");
    saker::text::Detokenizer detokenizer(*tokenizer);
    std::string streamed;
    for (const auto id : ids) {
      streamed += detokenizer.add(id);
    }
    streamed += detokenizer.finish();
    if (streamed != tokenizer->decode(ids)) {
      std::abort();
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
