// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json, and what follows a NUL as tokenizer_config.json; then a text and
// all its ids through it: results, or typed errors.
#include "saker/base/error.h"
#include "saker/text/detokenizer.h"
#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include "tests/support/temporary_dir.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    static const saker::testing::TemporaryDir dir;
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::string_view json = input.substr(0, input.find('\0'));
    saker::text::TokenizerConfig config;
    if (json.size() < input.size()) {
      dir.write("tokenizer_config.json", input.substr(json.size() + 1));
      config = saker::text::load_tokenizer_config(dir.path());
    }
    const auto tokenizer = saker::text::Tokenizer::parse(json, "input", config);
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
