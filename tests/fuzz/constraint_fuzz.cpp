// SPDX-License-Identifier: Apache-2.0
// A kind in the first byte, steps in the second, then a schema, an expression or a grammar. The text
// goes on with tokens that the mask allows, chosen by the steps.
#include "saker/base/error.h"
#include "saker/text/constraint.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

using saker::text::Constraint;
using saker::text::ConstraintKind;
using saker::text::Tokenizer;
using saker::text::TokenTrie;

constexpr int kVocabSize = 256;

// A token for each byte, and one that ends a text.
std::string byte_tokenizer() {
  std::string vocab;
  std::array<char, 64> item{};
  for (int byte = 0; byte < kVocabSize; ++byte) {
    std::snprintf(item.data(), item.size(), "\"<0x%02X>\": %d,", byte, byte);
    vocab += item.data();
  }
  return R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
            "post_processor": null, "decoder": {"type": "ByteFallback"},
            "model": {"type": "BPE", "byte_fallback": true, "unk_token": "u", "merges": [], "vocab": {)" +
         vocab + R"("u": 256}}})";
}

const TokenTrie& trie() {
  static const auto kTokenizer = Tokenizer::parse(byte_tokenizer(), "bytes");
  static const TokenTrie kTrie(*kTokenizer, std::vector<std::int32_t>{kVocabSize});
  return kTrie;
}

// The allowed token of this number, counted round; -1: none.
std::int32_t allowed(const std::vector<std::uint32_t>& bits, unsigned number) {
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < kVocabSize; ++id) {
    if ((bits[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1U) != 0) {
      ids.push_back(id);
    }
  }
  return ids.empty() ? -1 : ids[number % ids.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  try {
    Constraint constraint(trie(), static_cast<ConstraintKind>(data[0] % 3), text, "fuzz");
    std::vector<std::uint32_t> bits(kVocabSize / 32 + 1);
    for (unsigned step = 0; step < data[1] % 64U; ++step) {
      constraint.fill(bits);
      const std::int32_t token = allowed(bits, data[step % size] * 7U + step);
      if (token < 0 || !constraint.accept(token)) {
        break;
      }
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
