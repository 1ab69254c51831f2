// SPDX-License-Identifier: Apache-2.0
// Constraints over the bundled model's tokenizer: which texts they take, character by character, and
// what they cost at most.
#include "saker/text/constraint.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {
namespace {

using testing::expect_error;

const Tokenizer& tokenizer() {
  static const auto kTokenizer =
      Tokenizer::load(ModelTexts(std::filesystem::path(SAKER_SOURCE_DIR) / "models/demo"));
  return *kTokenizer;
}

const TokenTrie& trie() {
  static const TokenTrie kTrie(tokenizer(), std::vector<std::int32_t>{0});
  return kTrie;
}

bool has_bit(const std::vector<std::uint32_t>& bits, std::int32_t token) {
  return (bits[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

// Whether the text's tokens are allowed one after the other and the text may end behind them.
bool takes(ConstraintKind kind, std::string_view constraint, std::string_view text) {
  Constraint state(trie(), kind, constraint, "test");
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(tokenizer().vocab_size()) / 32 + 1);
  bool is_open = true;
  for (const std::int32_t token : tokenizer().encode(text, {.add_special_tokens = false})) {
    if (!is_open) {
      return false;
    }
    state.fill(bits);
    if (!has_bit(bits, token)) {
      return false;
    }
    is_open = state.accept(token);
  }
  return !is_open || state.fill(bits);
}

TEST(Constraint, JsonSchemas) {
  const std::string person =
      R"({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
          "required": ["name", "age"], "additionalProperties": false})";
  const auto fits = [&](std::string_view text) {
    return takes(ConstraintKind::kJsonSchema, person, text);
  };
  EXPECT_TRUE(fits(R"({"name": "Ann", "age": 7})"));
  EXPECT_TRUE(fits(R"({"name":"Ann","age":-7})"));
  EXPECT_TRUE(fits(R"({"name": "\u0007 \n \"quoted\" é", "age": 0})"));
  EXPECT_FALSE(fits(R"({"name": "Ann"})"));
  EXPECT_FALSE(fits(R"({"name": "Ann", "age": "7"})"));
  EXPECT_FALSE(fits(R"({"name": "Ann", "age": 7)"));
  EXPECT_FALSE(fits(R"({"name": "Ann", "age": 7, "more": 1})"));
  EXPECT_FALSE(fits(R"({"name": "Ann", "age": 7} and)"));
  EXPECT_FALSE(fits("{\n\n\n"));  // Blanks that could go on for ever.
}

TEST(Constraint, AnyJson) {
  for (const std::string_view text : {"{}", "[1, 2.5e3, null]", "true", R"({"a": {"b": []}})"}) {
    EXPECT_TRUE(takes(ConstraintKind::kJsonSchema, "{}", text)) << text;
  }
  EXPECT_FALSE(takes(ConstraintKind::kJsonSchema, "{}", "{a: 1}"));
  EXPECT_FALSE(takes(ConstraintKind::kJsonSchema, R"({"type": "object"})", "[1]"));
}

TEST(Constraint, RegularExpressions) {
  const auto fits = [](std::string_view text) {
    return takes(ConstraintKind::kRegex, R"(\d{3}-(a|é)+)", text);
  };
  EXPECT_TRUE(fits("123-a"));
  EXPECT_TRUE(fits("123-aéa"));
  EXPECT_FALSE(fits("123-"));
  EXPECT_FALSE(fits("12-a"));
  EXPECT_FALSE(fits("x123-a"));
  EXPECT_FALSE(fits("123-a "));
}

TEST(Constraint, Grammars) {
  const auto fits = [](std::string_view text) {
    return takes(
        ConstraintKind::kGrammar,
        "start: list\nlist: \"(\" (list | WORD)* \")\"\nWORD: /[a-z]+ ?/\n",
        text
    );
  };
  EXPECT_TRUE(fits("()"));
  EXPECT_TRUE(fits("(one (two three)((four)))"));
  EXPECT_FALSE(fits("(one (two)"));
  EXPECT_FALSE(fits("(one))"));
}

TEST(Constraint, TheEndIsTold) {
  Constraint state(trie(), ConstraintKind::kRegex, "ab?", "test");
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(tokenizer().vocab_size()) / 32 + 1);
  EXPECT_FALSE(state.fill(bits));
  EXPECT_FALSE(has_bit(bits, 0));
  EXPECT_TRUE(state.accept(tokenizer().token_id("a").value()));
  EXPECT_TRUE(state.fill(bits));
  EXPECT_TRUE(has_bit(bits, 0));  // The token that ends an answer.
  EXPECT_FALSE(state.accept(tokenizer().token_id("b").value()));
}

TEST(Constraint, SaysWhatIsWrong) {
  const auto fails = [](ConstraintKind kind, const std::string& text, std::string_view what) {
    expect_error(ErrorCode::kInvalidArgument, {"option", what}, [&] {
      Constraint(trie(), kind, text, "option");
    });
  };
  fails(ConstraintKind::kJsonSchema, "{", "JSON");
  fails(ConstraintKind::kJsonSchema, R"({"type": "banana"})", "banana");
  fails(ConstraintKind::kJsonSchema, R"({"not": {"type": "string"}})", "not");
  fails(ConstraintKind::kJsonSchema, R"({"$ref": "https://example.com/schema"})", "");
  fails(ConstraintKind::kRegex, "(a", "");
  fails(ConstraintKind::kRegex, "(?=a)b", "");
  fails(ConstraintKind::kGrammar, "begin: \"a\"", "start");
  fails(ConstraintKind::kGrammar, "", "");
  fails(ConstraintKind::kGrammar, "start: /[/", "");
  fails(ConstraintKind::kGrammar, "start: " + std::string(100000, '(') + "\"a\"", "deep");
}

std::string repeated(
    std::size_t count, std::string_view before, std::string_view text, std::string_view after
) {
  std::string result;
  for (std::size_t i = 0; i < count; ++i) {
    result += before;
  }
  result += text;
  for (std::size_t i = 0; i < count; ++i) {
    result += after;
  }
  return result;
}

// A grammar whose rules lead to one another.
std::string chained(const std::string& name, int count) {
  std::string grammar = "start: " + name + "0\n";
  for (int i = 0; i < count; ++i) {
    grammar += name + std::to_string(i) + ": " + name + std::to_string(i + 1) + "\n";
  }
  return grammar + name + std::to_string(count) + ": \"x\"\n";
}

// Constraints that explode are errors, or work; they never hang, crash or take the memory.
TEST(Constraint, HostileOnesEnd) {
  std::string chain = R"({"$ref": "#/$defs/a0", "$defs": {)";
  for (int i = 0; i < 20000; ++i) {
    chain +=
        "\"a" + std::to_string(i) + "\": {\"$ref\": \"#/$defs/a" + std::to_string(i + 1) + "\"},";
  }
  chain += R"("a20000": {"type": "null"}}})";
  std::string tools = R"({"anyOf": [)";
  for (int i = 0; i < 10000; ++i) {
    tools += (i == 0 ? "" : ",") +
             (R"({"type": "object", "properties": {"tool)" + std::to_string(i)) +
             R"(": {"type": "string"}}, "required": ["tool)" + std::to_string(i) + R"("]})";
  }
  tools += "]}";
  const std::vector<std::pair<ConstraintKind, std::string>> hostile{
      {ConstraintKind::kJsonSchema, R"({"$ref": "#"})"},
      {ConstraintKind::kJsonSchema,
       R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})"},
      {ConstraintKind::kJsonSchema, R"({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})"},
      {ConstraintKind::kJsonSchema, chain},
      {ConstraintKind::kJsonSchema, tools},
      {ConstraintKind::kJsonSchema, repeated(120, R"({"items": )", "{}", "}")},
      {ConstraintKind::kJsonSchema, repeated(100000, R"({"items": )", "{}", "}")},
      {ConstraintKind::kJsonSchema,
       R"({"type": "string", "minLength": 1000000, "maxLength": 2000000})"},
      {ConstraintKind::kJsonSchema, R"({"type": "array", "minItems": 1000000000})"},
      {ConstraintKind::kJsonSchema, R"({"type": "string", "pattern": "((a{1,100}){1,100}){1,100}"})"
      },
      {ConstraintKind::kRegex, "((a{1,1000}){1,1000}){1,1000}"},
      {ConstraintKind::kRegex, std::string(1 << 20, 'a')},
      {ConstraintKind::kRegex, std::string((1 << 20) + 1, 'a')},
      {ConstraintKind::kRegex, repeated(100000, "(", "a", ")*")},
      {ConstraintKind::kRegex, "(.*a.*){40}"},
      {ConstraintKind::kGrammar, "start: start"},
      {ConstraintKind::kGrammar, "start: start start | \"a\""},
      {ConstraintKind::kGrammar, "start: a*\na: b*\nb: \"\"\n"},
      {ConstraintKind::kGrammar, "start: \"a\"{1000000000}"},
      {ConstraintKind::kGrammar, chained("a", 60000)},
      {ConstraintKind::kGrammar, chained("A", 60000)},
      {ConstraintKind::kGrammar, chained("a", 1500)},
      {ConstraintKind::kGrammar, "start: " + repeated(20000, "\"a\" | ", "\"b\"", "")},
      {ConstraintKind::kGrammar, "start: " + repeated(20000, "\"a\" ", "\"b\"", "")},
  };
  for (const auto& [kind, text] : hostile) {
    SCOPED_TRACE(text.substr(0, 60));
    const auto begin = std::chrono::steady_clock::now();
    try {
      Constraint state(trie(), kind, text, "test");
      std::vector<std::uint32_t> bits(static_cast<std::size_t>(tokenizer().vocab_size()) / 32 + 1);
      state.fill(bits);
    } catch (const Error& error) {
      EXPECT_TRUE(
          error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kCapacity
      ) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      EXPECT_LT(std::string(error.what()).size(), 1500U);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(3));
  }
}

TEST(Constraint, OneThatNoTextFitsSaysSo) {
  for (const char* schema :
       {R"({"$ref": "#"})", R"({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})"}) {
    testing::expect_error(ErrorCode::kInvalidArgument, {"test", "no text fits it"}, [&] {
      Constraint state(trie(), ConstraintKind::kJsonSchema, schema, "test");
      std::vector<std::uint32_t> bits(static_cast<std::size_t>(tokenizer().vocab_size()) / 32 + 1);
      state.fill(bits);
    });
  }
}

}  // namespace
}  // namespace saker::text
