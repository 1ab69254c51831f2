// SPDX-License-Identifier: Apache-2.0

// Grammars of calls: what they allow is read as calls, in every format.

#include "saker/base/error.h"
#include "saker/text/constraint.h"
#include "saker/text/output/answer_collector.h"
#include "saker/text/output/call_grammar.h"
#include "saker/text/output/output_parser.h"

#include "tests/text/output_answers.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <ranges>
#include <string>
#include <vector>

namespace saker::text {
namespace {

// A token for each byte, and one that ends the text.
std::shared_ptr<const Tokenizer> byte_tokenizer() {
  Json vocabulary = Json::object();
  // GPT-2's letters for bytes.
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_shown =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const int code = is_shown ? byte : next++;
    std::string letter;
    if (code < 0x80) {
      letter = static_cast<char>(code);
    } else {
      letter += static_cast<char>(0xC0 | (code >> 6));
      letter += static_cast<char>(0x80 | (code & 0x3F));
    }
    vocabulary[letter] = byte;
  }
  const auto added = [](int id, const char* content) {
    return Json{
        {"id", id},
        {"content", content},
        {"single_word", false},
        {"lstrip", false},
        {"rstrip", false},
        {"normalized", false},
        {"special", true},
    };
  };
  const Json json = {
      {"version", "1.0"},
      {"added_tokens",
       {added(256, "<|end|>"),
        added(257, "<|channel|>"),
        added(258, "<|message|>"),
        added(259, "<|start|>"),
        added(260, "<|constrain|>"),
        added(261, "<|tool_call>"),
        added(262, "<tool_call|>"),
        added(263, "<｜tool▁calls▁begin｜>"),
        added(264, "<|eos|>")}},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"trim_offsets", true},
        {"use_regex", false}}},
      {"post_processor", nullptr},
      {"decoder",
       {{"type", "ByteLevel"},
        {"add_prefix_space", true},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}},
  };
  return Tokenizer::parse(json.dump(), "tokenizer.json");
}

constexpr std::int32_t kEnd = 264;

class OutputGrammar : public testing::Test {
 protected:
  // A random text of the grammar; short, since ends are taken when they can be.
  // `closer` ends free text.
  std::string walk(
      const std::string& grammar,
      std::uint32_t seed,
      std::string_view prefer = "",
      std::string_view closer = "\""
  ) {
    std::string pending;
    Constraint constraint(trie_, ConstraintKind::kGrammar, grammar, "grammar");
    std::mt19937 random(seed);
    std::vector<std::int32_t> tokens;
    std::vector<std::uint32_t> bits(16);
    while (tokens.size() < 2000) {
      const bool may_end = constraint.fill(bits);
      if (may_end && tokens.size() >= prefer.size()) {
        break;
      }
      std::vector<std::int32_t> allowed;
      const auto may = [&](std::int32_t id) {
        return ((bits[static_cast<std::size_t>(id) / 32] >> (id % 32)) & 1U) != 0;
      };
      const bool is_plain = std::ranges::any_of(std::views::iota(32, 127), may);
      for (std::int32_t id = 0; id < kEnd; ++id) {
        // Bytes of other characters only where nothing else may come.
        const bool is_text = (id >= 32 && id < 127) || id == '\n' || id >= 256 || !is_plain;
        if (is_text && may(id)) {
          allowed.push_back(id);
        }
      }
      if (allowed.empty()) {
        break;
      }
      std::int32_t token = allowed[random() % allowed.size()];
      if (pending.empty() && allowed.size() > 60 && random() % 4 == 0) {
        pending = may(static_cast<unsigned char>(closer.front())) ? closer : "\"";
      }
      if (!pending.empty()) {
        const auto next = static_cast<std::int32_t>(static_cast<unsigned char>(pending.front()));
        pending.erase(0, 1);
        token = may(next) ? next : token;
      } else if (allowed.back() >= 256 && random() % 4 == 0) {
        token = allowed.back();
      } else if (may('}')) {
        token = '}';
      }
      if (tokens.size() < prefer.size()) {
        token = static_cast<unsigned char>(prefer[tokens.size()]);
        EXPECT_TRUE(may(token)) << prefer << tokens.size();
      }
      tokens.push_back(token);
      if (!constraint.accept(token)) {
        break;
      }
    }
    return tokenizer_->decode(tokens);
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = byte_tokenizer();
  TokenTrie trie_{*tokenizer_, std::vector<std::int32_t>{kEnd}};
};

std::vector<Tool> grammar_tools() {
  std::vector<Tool> tools = test_tools();
  tools.pop_back();
  tools[0].parameters["required"] = {"city"};
  tools[0].parameters["additionalProperties"] = false;
  tools[1].parameters["required"] = {"zone"};
  tools[1].parameters["properties"]["zone"]["enum"] = {"Rome", "Oslo"};
  tools[1].parameters["additionalProperties"] = false;
  return tools;
}

TEST_F(OutputGrammar, ForcedCallsAreReadInEveryFormat) {
  for (const OutputFormat& format : known_formats()) {
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      const std::string grammar = call_grammar(
          format, grammar_tools(), *tokenizer_, {.is_forced = true, .is_parallel = seed % 2 == 0}
      );
      std::string text;
      try {
        const CallFormat* call = format.calls.empty() ? nullptr : &format.calls.front();
        std::string closer = call == nullptr ? "" : call->quote + call->value_close;
        if (const auto at = closer.find("{key}"); at != std::string::npos) {
          closer.replace(at, 5, "city");
        }
        text = walk(grammar, seed, "", closer.empty() ? "\"" : closer);
      } catch (const std::exception& error) {
        ADD_FAILURE() << format.name << ": " << error.what() << "\n" << grammar;
        break;
      }
      const AnswerParts parts = parse_pieces(format, {text}, grammar_tools(), AnswerEnd::kWhole);
      ASSERT_FALSE(parts.tool_calls.empty()) << format.name << ": " << text << "\n" << grammar;
      EXPECT_EQ(parts.content, "") << format.name << ": " << text;
      if (seed % 2 != 0) {
        EXPECT_EQ(parts.tool_calls.size(), 1U) << format.name << ": " << text;
      }
      for (const ToolCall& call : parts.tool_calls) {
        const Json arguments = Json::parse(call.arguments);
        if (call.name == "get_time") {
          EXPECT_TRUE(arguments.at("zone") == "Rome" || arguments.at("zone") == "Oslo") << text;
        } else {
          EXPECT_TRUE(arguments.at("city").is_string()) << text;
        }
      }
    }
  }
}

TEST_F(OutputGrammar, TextStaysFreeUntilACallBegins) {
  for (const char* name : {"hermes", "qwen3_coder", "glm", "mistral", "gemma4", "deepseek_v31"}) {
    const OutputFormat& format = *known_format(name);
    const std::string grammar =
        call_grammar(format, grammar_tools(), *tokenizer_, {.is_forced = false});
    try {
      EXPECT_EQ(walk(grammar, 1, "Hello <b>there"), "Hello <b>there") << name;
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << ": " << error.what() << "\n" << grammar;
    }
  }
  const OutputFormat& hermes = *known_format("hermes");
  const std::string begun =
      "Ok. <tool_call>\n{\"name\": \"get_time\", \"arguments\": {\"zone\": \"R";
  const std::string text =
      walk(call_grammar(hermes, grammar_tools(), *tokenizer_, {.is_forced = false}), 3, begun);
  const AnswerParts parts = parse_pieces(hermes, {text}, grammar_tools(), AnswerEnd::kWhole);
  ASSERT_FALSE(parts.tool_calls.empty()) << text;
  EXPECT_EQ(parts.tool_calls[0].arguments, R"({"zone": "Rome"})") << text;
}

TEST_F(OutputGrammar, SpecialTokensAreWrittenByTheirIds) {
  const std::string grammar = call_grammar(*known_format("gemma4"), grammar_tools(), *tokenizer_);
  EXPECT_NE(grammar.find("<[261]> \"call:get_weather\""), std::string::npos) << grammar;
}

TEST_F(OutputGrammar, WithoutAFormOfCallsThereIsNone) {
  EXPECT_THROW(call_grammar(plain_format(), grammar_tools(), *tokenizer_), Error);
}

}  // namespace
}  // namespace saker::text
