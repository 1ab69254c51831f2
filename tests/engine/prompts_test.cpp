// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/prompts.h"

#include "saker/base/error.h"

#include "tests/support/temporary_dir.h"
#include "tests/text/golden_tokenizers.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace saker::engine {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

Prompts::Parts parts() {
  Prompts::Parts parts;
  parts.tokenizer = text::GoldenTokenizer("byte_level_bpe").tokenizer;
  parts.eos_tokens = {1};
  return parts;
}

template <typename Request>
std::pair<ErrorCode, std::string> refusal(const Prompts& prompts, const Request& request) {
  try {
    prompts.encode(request);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::kInternal, "nothing was thrown"};
}

TEST(Prompts, TextGetsWhatTheTokenizerAddsAndABosWhereNoneIs) {
  Prompts::Parts with_bos = parts();
  const auto tokenizer = with_bos.tokenizer;
  Request request;
  request.prompt.text = "the cat sat";
  const Ids encoded = tokenizer->encode("the cat sat");
  EXPECT_EQ(Prompts(parts()).encode(request), encoded);
  with_bos.special_tokens["bos_token"] = encoded.front();
  EXPECT_EQ(Prompts(with_bos).special_token("bos_token"), encoded.front());
  EXPECT_EQ(Prompts(with_bos).special_token("eos_token"), std::nullopt);
  with_bos.add_bos_token = true;
  EXPECT_EQ(Prompts(with_bos).encode(request), encoded);
  with_bos.special_tokens["bos_token"] = 2;
  Ids expected = encoded;
  expected.insert(expected.begin(), 2);
  EXPECT_EQ(Prompts(with_bos).encode(request), expected);
}

TEST(Prompts, TokensAreUsedAsTheyAre) {
  Prompts::Parts with_bos = parts();
  with_bos.special_tokens["bos_token"] = 2;
  with_bos.add_bos_token = true;
  Request request;
  request.prompt.tokens = Ids{7, 8};
  EXPECT_EQ(Prompts(with_bos).encode(request), (Ids{7, 8}));
}

TEST(Prompts, MessagesGoThroughTheTemplateWithoutSpecialTokens) {
  Prompts::Parts chat = parts();
  chat.special_tokens["bos_token"] = 2;
  chat.add_bos_token = true;
  chat.chat_template.emplace("{% for m in messages %}{{ m.content }}{% endfor %}{{ tail }}");
  Request request;
  request.prompt.messages = Json::array({{{"role", "user"}, {"content", "the cat"}}});
  request.prompt.template_kwargs = {{"tail", " sat"}};
  EXPECT_EQ(
      Prompts(chat).encode(request),
      chat.tokenizer->encode("the cat sat", {.add_special_tokens = false})
  );
  const auto [code, message] = refusal(Prompts(parts()), request);
  EXPECT_EQ(code, ErrorCode::kUnsupported);
  EXPECT_THAT(message, HasSubstr("chat template"));
}

TEST(Prompts, ExactlyOneKindOfPrompt) {
  const Prompts prompts(parts());
  Request request;
  EXPECT_EQ(refusal(prompts, request).first, ErrorCode::kInvalidArgument);
  request.prompt.text = "a";
  request.prompt.tokens = Ids{1};
  EXPECT_THAT(refusal(prompts, request).second, HasSubstr("exactly one"));
  EXPECT_THAT(refusal(prompts, ScoreRequest{}).second, HasSubstr("exactly one"));
  EXPECT_THAT(refusal(prompts, ScoreRequest{.completion = "a"}).second, HasSubstr("exactly one"));
  EXPECT_THAT(
      refusal(prompts, ScoreRequest{.text = "a", .tokens = Ids{1}}).second, HasSubstr("exactly one")
  );
  EXPECT_THAT(
      refusal(prompts, ScoreRequest{.text = "a", .prompt_tokens = {1}}).second,
      HasSubstr("exactly one")
  );
}

TEST(Prompts, ScoringStartsAfterThePrompt) {
  const Prompts prompts(parts());
  const ScorePrompt tokens =
      prompts.encode(ScoreRequest{.tokens = Ids{5, 6}, .prompt_tokens = {3, 4}});
  EXPECT_EQ(tokens.tokens, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(tokens.first_scored, 2);
  EXPECT_EQ(prompts.encode(ScoreRequest{.text = "the cat"}).first_scored, 1);

  const ScorePrompt pair = prompts.encode(ScoreRequest{.prompt = "the cat", .completion = " sat"});
  EXPECT_EQ(pair.tokens, prompts.tokenizer()->encode("the cat sat"));
  EXPECT_EQ(pair.first_scored, static_cast<int>(prompts.tokenizer()->encode("the cat").size()));
  EXPECT_FALSE(pair.first_token_unscored);
  EXPECT_FALSE(pair.boundary_merged);
  EXPECT_THAT(
      refusal(prompts, ScoreRequest{.prompt = "the cat", .completion = ""}).second,
      HasSubstr("adds no token")
  );
}

TEST(Prompts, APromptAloneIsForItsNextToken) {
  const Prompts prompts(parts());
  const ScorePrompt text = prompts.encode(next_token_dist("the cat"));
  EXPECT_EQ(text.tokens, prompts.tokenizer()->encode("the cat"));
  EXPECT_EQ(text.first_scored, static_cast<int>(text.tokens.size()));
  const ScorePrompt ids = prompts.encode(ScoreRequest{.prompt_tokens = {3, 4}, .top_k = 1});
  EXPECT_EQ(ids.tokens, (Ids{3, 4}));
  EXPECT_EQ(ids.first_scored, 2);
  EXPECT_THAT(refusal(prompts, next_token_dist("the cat", 0)).second, HasSubstr("top_k"));
  Prompts::Parts without_bos;
  without_bos.tokenizer = text::GoldenTokenizer("unigram").tokenizer;
  EXPECT_THAT(refusal(Prompts(without_bos), next_token_dist("")).second, HasSubstr("no tokens"));
}

TEST(Prompts, NothingIsBeforeTheFirstTokenAfterAnEmptyPrompt) {
  Prompts::Parts without_bos;
  without_bos.tokenizer = text::GoldenTokenizer("unigram").tokenizer;
  const Prompts prompts(without_bos);
  const ScorePrompt pair = prompts.encode(ScoreRequest{.prompt = "", .completion = "the cat"});
  EXPECT_EQ(pair.first_scored, 0);
  EXPECT_TRUE(pair.first_token_unscored);
}

TEST(Prompts, MergedBoundariesAreSeen) {
  const Prompts prompts(parts());
  // "th" ends in a token that "the" does not have.
  const ScorePrompt merged =
      prompts.encode(ScoreRequest{.prompt = "the cat sat th", .completion = "e cat sat"});
  EXPECT_EQ(merged.tokens, prompts.tokenizer()->encode("the cat sat the cat sat"));
  EXPECT_TRUE(merged.boundary_merged);
}

TEST(Prompts, XtcNeverRemovesLineBreakAndEos) {
  const Prompts prompts(parts());
  Ids expected = {1};
  for (const auto id : prompts.tokenizer()->encode("\n", {.add_special_tokens = false})) {
    expected.push_back(id);
  }
  EXPECT_EQ(prompts.xtc_exempt(), expected);
}

TEST(Prompts, AHostileTokenizerHarmsNobodyWhoNeedsNoText) {
  Json json = text::GoldenTokenizer("byte_level_bpe").golden.at("tokenizer");
  const Json step = {
      {"type", "Replace"},
      {"pattern", {{"String", "\n"}}},
      {"content", std::string(1000, '\n')},
  };
  json["normalizer"] = {
      {"type", "Sequence"}, {"normalizers", Json::array({step, step, step, step})}
  };
  Prompts::Parts hostile = parts();
  hostile.tokenizer = text::Tokenizer::parse(json.dump(), "hostile");
  const Prompts prompts(hostile);
  Request request;
  request.prompt.tokens = Ids{7, 8};
  EXPECT_EQ(prompts.encode(request), (Ids{7, 8}));
  EXPECT_THROW(prompts.xtc_exempt(), Error);
}

TEST(Prompts, ALongPromptIsRefusedBeforeItIsEncoded) {
  const Prompts prompts(parts());
  Request request;
  request.prompt.text = "";
  while (request.prompt.text->size() <= 2 * text::kWholeTextBytes) {
    *request.prompt.text += "the cat sat ";
  }
  const std::size_t count = prompts.encode(request).size();
  EXPECT_EQ(prompts.encode(request, static_cast<std::int64_t>(count)).size(), count);
  try {
    prompts.encode(request, 100);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("more than 100 tokens, but the model's context is 100"));
  }
  request.prompt.text = "the cat sat";
  EXPECT_EQ(prompts.encode(request, 1), prompts.encode(request));
}

TEST(Prompts, WithoutATokenizerOnlyTokensRun) {
  Prompts::Parts ids_only = parts();
  ids_only.tokenizer = nullptr;
  ids_only.chat_template.emplace("{{ messages }}");
  const Prompts prompts(ids_only);
  EXPECT_EQ(prompts.xtc_exempt(), Ids{1});
  Request request;
  request.prompt.tokens = Ids{7, 8};
  EXPECT_EQ(prompts.encode(request), (Ids{7, 8}));
  EXPECT_EQ(prompts.encode(ScoreRequest{.tokens = Ids{5, 6}}).tokens, (Ids{5, 6}));

  EXPECT_EQ(refusal(prompts, ScoreRequest{.text = "a"}).first, ErrorCode::kUnsupported);
  request.prompt.tokens.reset();
  request.prompt.messages = Json::array();
  EXPECT_THAT(refusal(prompts, request).second, HasSubstr("tokenizer.json"));
  request.prompt.messages.reset();
  request.prompt.text = "a";
  EXPECT_THAT(refusal(prompts, request).second, HasSubstr("tokenizer.json"));
}

TEST(SamplingFrom, ReadsWhatTheFileAsksFor) {
  const RecommendedSampling sampling = sampling_from(
      {{"do_sample", true},
       {"temperature", 0.6},
       {"top_p", 0.95},
       {"top_k", 20},
       {"min_p", 0.01},
       {"repetition_penalty", 1.05},
       {"suppress_tokens", {258883, 7}},
       {"eos_token_id", {1, 2}}}
  );
  EXPECT_TRUE(sampling.warnings.empty());
  const sample::SamplingOptions& options = sampling.options;
  EXPECT_EQ(options.temperature, 0.6);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.min_p, 0.01);
  EXPECT_EQ(options.repetition_penalty, 1.05);
  EXPECT_EQ(options.repetition_context_size, 0);
  EXPECT_EQ(options.suppress_tokens, (std::vector<std::int32_t>{258883, 7}));
  EXPECT_TRUE(sampling_from({{"suppress_tokens", nullptr}}).options.suppress_tokens.empty());
}

TEST(SamplingFrom, WithoutSamplingIsGreedy) {
  EXPECT_EQ(sampling_from(Json::object()).options.temperature, 0.0);
  EXPECT_EQ(sampling_from({{"do_sample", false}, {"temperature", 0.7}}).options.temperature, 0.0);
  EXPECT_EQ(sampling_from({{"temperature", 0.7}}).options.temperature, 0.0);
  EXPECT_EQ(sampling_from({{"temperature", 0.7}, {"do_sample", true}}).options.temperature, 0.7);
  EXPECT_EQ(sampling_from({{"do_sample", true}}).options.temperature, 1.0);
  EXPECT_EQ(
      sampling_from({{"do_sample", true}, {"temperature", nullptr}}).options.temperature, 1.0
  );
  EXPECT_EQ(sampling_from({{"do_sample", true}, {"top_k", nullptr}}).options.top_k, 0);
}

TEST(SamplingFrom, NonsenseIsLeftOutAndNamed) {
  const std::vector<std::pair<Json, std::string>> cases = {
      {{{"top_p", 7}}, "top_p: got 7"},
      {{{"min_p", "hot"}}, "hot"},
      {{{"do_sample", "yes"}}, "do_sample"},
      {{{"temperature", -1}, {"do_sample", true}}, "temperature"},
      {{{"top_k", Json::array()}}, "top_k"},
      {{{"repetition_penalty", -3}}, "repetition_penalty"},
      {{{"suppress_tokens", 7}}, "suppress_tokens: got 7"},
      {{{"suppress_tokens", "7"}}, "suppress_tokens: got string"},
      {{{"suppress_tokens", {7, -1}}}, "suppress_tokens: got -1"},
      {{{"suppress_tokens", Json::array({7.5})}}, "suppress_tokens: got 7.5"},
      {{{"suppress_tokens", Json::array({1ULL << 40U})}}, "got 1099511627776"},
  };
  for (auto [config, expected] : cases) {
    config["typical_p"] = 0.5;
    const RecommendedSampling sampling = sampling_from(config);
    ASSERT_EQ(sampling.warnings.size(), 1U) << config;
    EXPECT_THAT(sampling.warnings[0], HasSubstr("generation_config.json: "));
    EXPECT_THAT(sampling.warnings[0], HasSubstr(expected));
    EXPECT_EQ(sampling.options.typical_p, 0.5) << config;
    EXPECT_EQ(sampling.options.top_p, 1.0) << config;
    EXPECT_TRUE(sampling.options.suppress_tokens.empty()) << config;
  }
}

TEST(Prompts, WithBrokenTextsTokensRun) {
  const saker::testing::TemporaryDir dir;
  dir.write("config.json", R"({"eos_token_id": 7})");
  dir.write("tokenizer.json", "{}");
  dir.write("generation_config.json", "{");
  const Prompts prompts(Prompts::read(dir.path()));
  EXPECT_EQ(prompts.tokenizer(), nullptr);
  EXPECT_EQ(prompts.eos_tokens(), Ids{7});
  ASSERT_EQ(prompts.warnings().size(), 1U);
  EXPECT_EQ(prompts.encode(ScoreRequest{.tokens = Ids{5, 6}}).tokens, (Ids{5, 6}));
  const auto [code, message] = refusal(prompts, ScoreRequest{.text = "a"});
  EXPECT_EQ(code, ErrorCode::kCorruptData);
  EXPECT_THAT(message, HasSubstr("tokenizer.json"));
}

TEST(Prompts, ThinkingAndPartsReachTheTemplate) {
  Prompts::Parts chat = parts();
  chat.chat_template.emplace(
      "{{ messages[0].content + ' ' if enable_thinking else 'the ' }}{{ messages[0].content }}"
  );
  const Prompts prompts(chat);
  Request request;
  request.prompt.messages = Json::array(
      {{{"role", "user"},
        {"content", {{{"type", "text"}, {"text", "ca"}}, {{"type", "text"}, {"text", "t"}}}}}}
  );
  const auto expected = [&](const char* text) {
    return chat.tokenizer->encode(text, {.add_special_tokens = false});
  };
  EXPECT_EQ(prompts.encode(request), expected("the cat"));
  request.prompt.think = true;
  EXPECT_EQ(prompts.encode(request), expected("cat cat"));
  (*request.prompt.messages)[0]["content"][0] = {{"type", "image_url"}};
  EXPECT_EQ(refusal(prompts, request).first, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace saker::engine
