// SPDX-License-Identifier: Apache-2.0
// A thousand tokenizers made to harm: each step is legal or nearly so, and together they grow,
// search or break. Whatever they are, loading them and encoding and decoding a little either works
// or fails with one line.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/memory.h"
#include "saker/text/detokenizer.h"
#include "saker/text/tokenizer.h"

#include "tests/support/sanitizers.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {
namespace {

using saker::testing::kIsSanitized;

constexpr int kTokenizers = kIsSanitized ? 250 : 1000;  // Some times as slow.
constexpr std::size_t kMaxMemory = std::size_t{512} << 20;
// Each takes 5 s at most; this many times that on a machine that does other things.
constexpr std::chrono::seconds kHang(300);

std::string repeat(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Json tokenizer() {
    return {
        {"version", "1.0"},
        {"truncation", one_in(20) ? truncation() : Json()},
        {"padding", one_in(20) ? padding() : Json()},
        {"added_tokens", added_tokens()},
        {"normalizer", one_in(3) ? Json() : sequence("normalizers", &Maker::normalizer)},
        {"pre_tokenizer", one_in(3) ? Json() : sequence("pretokenizers", &Maker::pre_tokenizer)},
        {"post_processor", one_in(2) ? Json() : sequence("processors", &Maker::post_processor)},
        {"decoder", one_in(3) ? Json() : sequence("decoders", &Maker::decoder)},
        {"model", model()},
    };
  }

 private:
  bool one_in(int count) { return pick(count) == 0; }

  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }

  template <typename T>
  T of(std::initializer_list<T> items) {
    return *(items.begin() + pick(static_cast<int>(items.size())));
  }

  std::string text() {
    return of<std::string>(
        {"", "a", "\n", " ", "b", repeat("a", 1000), repeat("ab", 60), "▁", "<unk>", "é"}
    );
  }

  Json pattern() {
    if (one_in(2)) {
      return {{"String", text()}};
    }
    return {
        {"Regex",
         of<std::string>(
             {"",
              "a",
              "(?:a|b|ab)*c",
              "(a+)+$",
              "(a|aa)+b",
              "[^x]++x",
              "(?=(a*))\\1b",
              "\\s+(?!\\S)|\\s+",
              "(((a{100}){100}){100}){100}",
              "(?<n>a\\g<n>?b)",
              "(?i:ﬃ|ß|ss){30}",
              "(",
              "\\p{L}+|.",
              "a*?",
              "(?<=a{1,50})b",
              ".*",
              "^",
              "\\b"}
         )}
    };
  }

  Json sequence(const char* key, Json (Maker::*step)()) {
    if (one_in(3)) {
      return (this->*step)();
    }
    Json steps = Json::array();
    for (int count = pick(6); count >= 0; --count) {
      steps.push_back((this->*step)());
    }
    return {{"type", "Sequence"}, {key, std::move(steps)}};
  }

  Json normalizer() {
    switch (pick(9)) {
      case 0:
      case 1:
      case 2:
        return {{"type", "Replace"}, {"pattern", pattern()}, {"content", text()}};
      case 3:
        return {{"type", "Prepend"}, {"prepend", one_in(3) ? repeat("x", 100'000) : text()}};
      case 4:
        return {{"type", "Strip"}, {"strip_left", one_in(2)}, {"strip_right", one_in(2)}};
      case 5:
        return {
            {"type", "Precompiled"},
            {"precompiled_charsmap", of<std::string>({"", "AAAA", "BAAAAAAAAAD/////", "!"})}
        };
      case 6:
        return {
            {"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}
        };
      default:
        return {
            {"type",
             of<std::string>({"NFC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel"})}
        };
    }
  }

  Json pre_tokenizer() {
    switch (pick(8)) {
      case 0:
      case 1:
        return {
            {"type", "Split"},
            {"pattern", pattern()},
            {"behavior",
             of<std::string>(
                 {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}
             )},
            {"invert", one_in(2)}
        };
      case 2:
        return {{"type", "FixedLength"}, {"length", of({0, 1, 1'000'000})}};
      case 3:
        return {
            {"type", "Metaspace"},
            {"replacement", of<std::string>({"▁", "a", " "})},
            {"prepend_scheme", of<std::string>({"always", "first", "never"})},
            {"split", one_in(2)}
        };
      case 4:
        return {{"type", "CharDelimiterSplit"}, {"delimiter", "a"}};
      case 5:
        return {{"type", "Punctuation"}, {"behavior", "Contiguous"}};
      case 6:
        return {
            {"type", "ByteLevel"},
            {"add_prefix_space", one_in(2)},
            {"trim_offsets", true},
            {"use_regex", one_in(2)}
        };
      default:
        return {{"type", of<std::string>({"Whitespace", "WhitespaceSplit", "UnicodeScripts"})}};
    }
  }

  Json post_processor() {
    switch (pick(4)) {
      case 0:
        return {
            {"type", "RobertaProcessing"},
            {"sep", Json::array({"</s>", 2})},
            {"cls", Json::array({"<s>", 4'000'000'000U})},
            {"trim_offsets", true},
            {"add_prefix_space", one_in(2)}
        };
      case 1:
        return {
            {"type", "ByteLevel"},
            {"add_prefix_space", true},
            {"trim_offsets", one_in(2)},
            {"use_regex", true}
        };
      default:
        return template_processing();
    }
  }

  Json template_processing() {
    Json single = Json::array();
    for (int count = one_in(4) ? 3000 : pick(4); count > 0; --count) {
      single.push_back({{"SpecialToken", {{"id", "[X]"}, {"type_id", 0}}}});
    }
    for (int count = pick(3); count > 0; --count) {
      single.push_back({{"Sequence", {{"id", one_in(4) ? "B" : "A"}, {"type_id", 0}}}});
    }
    const int ids = one_in(4) ? 3000 : 1;
    const Json known = {
        {"id", "[X]"},
        {"ids", std::vector<int>(static_cast<std::size_t>(ids), 1)},
        {"tokens", std::vector<std::string>(static_cast<std::size_t>(one_in(5) ? 0 : ids), "x")}
    };
    return {
        {"type", "TemplateProcessing"},
        {"single", std::move(single)},
        {"pair", Json::array()},
        {"special_tokens", one_in(6) ? Json::object() : Json({{"[X]", known}})}
    };
  }

  Json decoder() {
    switch (pick(8)) {
      case 0:
      case 1:
      case 2:
        return {{"type", "Replace"}, {"pattern", pattern()}, {"content", text()}};
      case 3:
        return {
            {"type", "Strip"},
            {"content", "a"},
            {"start", of<std::int64_t>({0, 1, std::int64_t{1} << 60})},
            {"stop", of<std::int64_t>({0, 1, std::int64_t{1} << 60})}
        };
      case 4:
        return {
            {"type", "CTC"},
            {"pad_token", text()},
            {"word_delimiter_token", text()},
            {"cleanup", one_in(2)}
        };
      case 5:
        return {{"type", "WordPiece"}, {"prefix", text()}, {"cleanup", one_in(2)}};
      case 6:
        return {{"type", "BPEDecoder"}, {"suffix", text()}};
      default:
        return {{"type", of<std::string>({"ByteFallback", "Fuse", "ByteLevel"})}};
    }
  }

  Json truncation() {
    return {
        {"direction", "Right"},
        {"max_length", of({0, 1, 512})},
        {"strategy", "LongestFirst"},
        {"stride", of({0, 1000})}
    };
  }

  static Json padding() {
    return {
        {"strategy", {{"Fixed", 1'000'000'000'000}}},
        {"direction", "Right"},
        {"pad_to_multiple_of", nullptr},
        {"pad_id", 0},
        {"pad_type_id", 0},
        {"pad_token", "<unk>"}
    };
  }

  Json added_tokens() {
    Json tokens = Json::array();
    for (int count = pick(4); count > 0; --count) {
      tokens.push_back({
          {"id", of<std::int64_t>({0, 1, 7, 4'294'967'295})},
          {"content", one_in(10) ? repeat("y", 5000) : text()},
          {"single_word", one_in(3)},
          {"lstrip", one_in(3)},
          {"rstrip", one_in(3)},
          {"normalized", one_in(2)},
          {"special", one_in(2)},
      });
    }
    return tokens;
  }

  Json model() {
    switch (pick(4)) {
      case 0:
        return unigram();
      case 1:
        return {
            {"type", "WordPiece"},
            {"unk_token", one_in(3) ? "missing" : "<unk>"},
            {"continuing_subword_prefix", text()},
            {"max_input_chars_per_word", of<std::int64_t>({0, 100, 1'000'000'000})},
            {"vocab", vocabulary()}
        };
      case 2:
        return {
            {"type", "WordLevel"},
            {"unk_token", one_in(3) ? "missing" : "<unk>"},
            {"vocab", vocabulary()}
        };
      default:
        return {
            {"type", "BPE"},
            {"dropout", one_in(8) ? Json(0.5) : Json()},
            {"unk_token", one_in(3) ? Json("missing") : Json("<unk>")},
            {"continuing_subword_prefix", one_in(3) ? Json(text()) : Json()},
            {"end_of_word_suffix", one_in(3) ? Json(text()) : Json()},
            {"fuse_unk", one_in(2)},
            {"byte_fallback", one_in(2)},
            {"ignore_merges", one_in(2)},
            {"vocab", vocabulary()},
            {"merges", one_in(4) ? Json::array({"a b", "aa ab"}) : Json::array({"a a"})}
        };
    }
  }

  Json vocabulary() {
    Json pieces = {{"<unk>", 0}, {"a", 1}, {"b", 2}, {"aa", 3}, {"ab", 4}, {" ", 5}};
    pieces["\n"] = of<std::int64_t>({6, 4'294'967'295, -1});
    pieces[one_in(10) ? repeat("a", 5000) : repeat("a", 300)] = 7;
    return pieces;
  }

  Json unigram() {
    Json pieces = Json::array({Json::array({"<unk>", 0.0}), Json::array({"a", -1.0})});
    for (int length = 1; length < 4096; length *= 2) {
      pieces.push_back(Json::array({repeat("a", length), -static_cast<double>(length)}));
    }
    return {
        {"type", "Unigram"},
        {"unk_id", of<std::int64_t>({0, 1, 1'000'000})},
        {"byte_fallback", one_in(2)},
        {"vocab", std::move(pieces)}
    };
  }

  std::mt19937 random_;
};

// How far it comes; throws Error.
void use(const std::string& json, const std::string& text) {
  const auto tokenizer = Tokenizer::parse(json, "hostile");
  const std::vector<std::int32_t> ids = tokenizer->encode(text);
  const std::vector<std::int32_t> few(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(ids.size(), 200))
  );
  tokenizer->decode(few);
  Detokenizer detokenizer(*tokenizer);
  for (const std::int32_t id : few) {
    detokenizer.add(id);
  }
  detokenizer.finish();
}

TEST(HostileTokenizers, EndWithinBounds) {
  const std::string text = repeat("a b\n", 500) + repeat("a", 1000) + repeat("ab ", 300);
  int failed = 0;
  for (unsigned seed = 0; seed < kTokenizers; ++seed) {
    const std::string json = Maker(seed).tokenizer().dump();
    const auto start = std::chrono::steady_clock::now();
    try {
      use(json, text);
    } catch (const Error& error) {
      ++failed;
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << seed;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, kHang) << seed << ": " << json;
  }
  EXPECT_GT(failed, kTokenizers / 10);
  EXPECT_LT(failed, kTokenizers);
  // Sanitizers keep what is freed, to find later uses.
  if (!kIsSanitized) {
    EXPECT_LT(peak_memory_bytes(), kMaxMemory + (std::size_t{128} << 20));
  }
}

}  // namespace
}  // namespace saker::text
