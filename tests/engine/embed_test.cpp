// SPDX-License-Identifier: Apache-2.0
// Vectors of texts and scores of documents, from models as sentence-transformers saves them.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/engine/engine.h"

#include "tests/engine/model_folder.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {
namespace {

using testing::expect_error;
using Vectors = std::vector<std::vector<float>>;

std::filesystem::path golden_path(const std::string& name) {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/embedding" / name;
}

// A copy of a golden model, to change.
class GoldenCopy {
 public:
  explicit GoldenCopy(const std::string& name)
      : golden(read_json_file(golden_path(name) / "golden.json")) {
    std::filesystem::copy(golden_path(name), path(), std::filesystem::copy_options::recursive);
  }

  std::filesystem::path path() const { return dir_.path() / "model"; }

  // Changes one member of a JSON file.
  void set(const std::string& file, const std::string& key, const Json& value) const {
    Json content = read_json_file(path() / file);
    content[key] = value;
    dir_.write("model/" + file, content.dump());
  }

  std::unique_ptr<Engine> load(const EngineOptions& options = {}) const {
    return Engine::load(path(), options);
  }

  Json golden;

 private:
  testing::TemporaryDir dir_;
};

EmbedRequest texts_of(const Json& golden) {
  EmbedRequest request;
  for (const Json& text : golden.at("texts")) {
    request.inputs.emplace_back(text.get<std::string>());
  }
  return request;
}

void expect_near(const Vectors& got, const Json& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size(), wanted[i].size());
    for (std::size_t at = 0; at < got[i].size(); ++at) {
      EXPECT_NEAR(got[i][at], wanted[i][at].get<float>(), 2e-6F) << "text " << i;
    }
  }
}

class EmbedGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(EmbedGolden, TextsAreEncodedAndPooledAsTheFilesSay) {
  const GoldenCopy folder(GetParam());
  const auto engine = folder.load();
  EmbedRequest request = texts_of(folder.golden);
  request.truncate = true;  // As sentence-transformers does.
  const EmbedResult result = engine->embed(request);
  expect_near(result.embeddings, folder.golden.at("vectors"));
  std::int64_t tokens = 0;
  for (const Json& ids : folder.golden.at("tokens")) {
    tokens += static_cast<std::int64_t>(ids.size());
  }
  EXPECT_EQ(result.tokens, tokens);
  request.prompt_name = "query";
  expect_near(engine->embed(request).embeddings, folder.golden.at("queries"));
  request.prompt_name = "";
  request.prompt = "find: ";
  expect_near(engine->embed(request).embeddings, folder.golden.at("queries"));
  request.prompt.reset();
  request.dimensions = 8;
  expect_near(engine->embed(request).embeddings, folder.golden.at("cut"));
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    EmbedGolden,
    ::testing::Values(
        "gemma3", "qwen3", "qwen3_old", "bert", "xlm_roberta", "nomic_bert", "modernbert"
    )
);

// The files may say less than the model's context: 24 tokens here, by the tokenizer's file.
TEST(Embed, TextsHaveAtMostTheTokensOfTheFiles) {
  const GoldenCopy folder("bert");
  EmbedRequest request;
  request.inputs = {std::string(23, 'a')};
  expect_error(ErrorCode::kInvalidArgument, {"25 tokens", "at most 24"}, [&] {
    folder.load()->embed(request);
  });
  folder.set("sentence_bert_config.json", "max_seq_length", 10);
  expect_error(ErrorCode::kInvalidArgument, {"25 tokens", "at most 10"}, [&] {
    folder.load()->embed(request);
  });
  request.truncate = true;
  const EmbedResult cut = folder.load()->embed(request);
  EXPECT_EQ(cut.tokens, 10);
  EXPECT_EQ(cut.truncated, 1);
  folder.set("sentence_bert_config.json", "do_lower_case", true);
  expect_error(ErrorCode::kUnsupported, {"do_lower_case"}, [&] { folder.load()->embed(request); });
}

TEST(Embed, BitsDoNotDependOnWhatElseRuns) {
  const GoldenCopy folder("gemma3");
  EmbedRequest all;
  for (int i = 0; i < 40; ++i) {
    all.inputs.emplace_back(
        std::string(static_cast<std::size_t>(i * 7 % 50), 'a') + std::to_string(i)
    );
  }
  Vectors alone;
  {
    const auto engine = folder.load({.threads = 1});
    for (const EmbedInput& input : all.inputs) {
      alone.push_back(engine->embed({.inputs = {input}}).embeddings.front());
    }
  }
  for (const int step : {1, 32, 512}) {
    EXPECT_EQ(folder.load({.threads = 3, .prefill_step = step})->embed(all).embeddings, alone);
  }
}

TEST(Embed, TokensAreUsedAsTheyAre) {
  const GoldenCopy folder("gemma3");
  const auto engine = folder.load();
  EmbedRequest request;
  for (const Json& ids : folder.golden.at("tokens")) {
    request.inputs.emplace_back(ids.get<std::vector<std::int32_t>>());
  }
  request.prompt_name = "query";  // For texts.
  expect_near(engine->embed(request).embeddings, folder.golden.at("vectors"));
}

TEST(Embed, ADefaultPromptBeginsTexts) {
  const GoldenCopy folder("gemma3");
  folder.set("config_sentence_transformers.json", "default_prompt_name", "query");
  const auto engine = folder.load();
  EmbedRequest request = texts_of(folder.golden);
  expect_near(engine->embed(request).embeddings, folder.golden.at("queries"));
  request.prompt = "";
  expect_near(engine->embed(request).embeddings, folder.golden.at("vectors"));
}

TEST(Embed, PoolingAndLengthCanBeChosen) {
  const GoldenCopy folder("qwen3");
  const auto engine = folder.load();
  EmbedRequest request = texts_of(folder.golden);
  const Vectors own = engine->embed(request).embeddings;
  request.pooling = models::Pooling::kLast;
  EXPECT_EQ(engine->embed(request).embeddings, own);
  request.pooling = models::Pooling::kMean;
  EXPECT_NE(engine->embed(request).embeddings, own);
  request.normalize = false;
  const auto raw = engine->embed(request).embeddings;
  double squares = 0.0;
  for (const float x : raw.back()) {
    squares += static_cast<double>(x) * static_cast<double>(x);
  }
  EXPECT_GT(std::abs(squares - 1.0), 1e-3);
}

// tokenizer_config.json's `add_eos_token` ends a text too.
TEST(Embed, AnEosTokenEndsTextsIfTheTokenizerSaysSo) {
  const GoldenCopy folder("qwen3_old");
  folder.set("tokenizer_config.json", "add_eos_token", true);
  folder.set("config.json", "eos_token_id", 3);
  expect_near(
      folder.load()->embed(texts_of(folder.golden)).embeddings, folder.golden.at("vectors")
  );
}

TEST(Embed, LongTextsAreRefusedOrCut) {
  const GoldenCopy folder("gemma3");
  const auto engine = folder.load();
  EmbedRequest request;
  request.inputs = {std::string("short"), std::string(100, 'a')};
  expect_error(ErrorCode::kInvalidArgument, {"input 1", "102 tokens", "64"}, [&] {
    engine->embed(request);
  });
  const std::string longer(std::size_t{1} << 19, 'a');
  request.inputs = {longer};
  expect_error(ErrorCode::kInvalidArgument, {"524288 bytes", "64"}, [&] {
    engine->embed(request);
  });
  // What is left has the tokens around a text: <bos>, 62 letters, <eos>.
  request.truncate = true;
  request.inputs = {longer, std::string(100, 'a'), std::string(62, 'a')};
  const EmbedResult cut = engine->embed(request);
  EXPECT_EQ(cut.truncated, 2);
  EXPECT_EQ(cut.tokens, 3 * 64);
  EXPECT_EQ(cut.embeddings[0], cut.embeddings[2]);
  EXPECT_EQ(cut.embeddings[1], cut.embeddings[2]);
}

TEST(Embed, ErrorsNameWhatIsWrong) {
  const GoldenCopy folder("gemma3");
  const auto engine = folder.load();
  const auto fails = [&](const EmbedRequest& request, const std::vector<std::string_view>& words) {
    expect_error(ErrorCode::kInvalidArgument, words, [&] { engine->embed(request); });
  };
  fails({.inputs = {std::string("a")}, .dimensions = 25}, {"dimensions", "25", "24"});
  fails({.inputs = {std::string("a")}, .prompt_name = "x"}, {"prompt_name", "'x'", "query"});
  fails({.inputs = {std::string("a")}, .prompt_name = "query", .prompt = "b"}, {"both"});
  fails({.inputs = {std::string("\xff")}}, {"UTF-8"});
  fails({.inputs = {std::vector<std::int32_t>{}}}, {"no tokens"});
  fails({.inputs = {std::vector<std::int32_t>{9999}}}, {"9999"});
  EXPECT_EQ(engine->embed({}).embeddings, Vectors());
}

TEST(Embed, ModelsThatOnlyEmbedDoNotGenerate) {
  for (const std::string name : {"gemma3", "qwen3"}) {
    const GoldenCopy folder(name);
    const auto engine = folder.load();
    expect_error(ErrorCode::kUnsupported, {"only embeds texts"}, [&] {
      engine->generate({.prompt = {.text = "a"}});
    });
    expect_error(ErrorCode::kUnsupported, {"only embeds texts"}, [&] {
      engine->score(rolling_logprob("abc"));
    });
    expect_error(ErrorCode::kUnsupported, {"no reranker"}, [&] {
      engine->rerank({.query = "a", .documents = {"b"}});
    });
  }
}

// Files that cannot be used stop vectors, not the model.
TEST(Embed, UnknownModulesAreNamed) {
  const GoldenCopy folder("qwen3");
  folder.set("1_Pooling/config.json", "pooling_mode", "max");
  expect_error(ErrorCode::kUnsupported, {"'max'", "lasttoken"}, [&] {
    folder.load()->embed({.inputs = {std::string("a")}});
  });
}

// A model that generates embeds, too: the last token's row, of unit length.
TEST(Embed, AModelThatGenerates) {
  const ModelFolder folder("llama");
  const auto engine = folder.load();
  const EmbedResult result = engine->embed({.inputs = {std::string("!"), std::string("\"")}});
  ASSERT_EQ(result.embeddings.size(), 2U);
  EXPECT_EQ(result.embeddings[0].size(), 32U);
  EXPECT_NE(result.embeddings[0], result.embeddings[1]);
  expect_error(ErrorCode::kUnsupported, {"no reranker", "llama"}, [&] {
    engine->rerank({.query = "a", .documents = {"b"}});
  });
}

RerankRequest golden_request(const GoldenCopy& folder) {
  RerankRequest request{.query = folder.golden.at("query").get<std::string>()};
  for (const Json& document : folder.golden.at("documents")) {
    request.documents.push_back(document.get<std::string>());
  }
  return request;
}

// Scores are the golden's, and each document has the same one alone.
void expect_golden_scores(const GoldenCopy& folder, Engine& engine, const RerankRequest& request) {
  const RerankResult together = engine.rerank(request);
  ASSERT_EQ(together.scores.size(), request.documents.size());
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < together.scores.size(); ++i) {
    EXPECT_NEAR(together.scores[i], folder.golden.at("scores").at(i).get<double>(), 1e-5);
    tokens += static_cast<std::int64_t>(folder.golden.at("tokens").at(i).size());
    const RerankRequest one{.query = request.query, .documents = {request.documents[i]}};
    EXPECT_EQ(engine.rerank(one).scores.front(), together.scores[i]);
  }
  EXPECT_EQ(together.tokens, tokens);
}

class RerankGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(RerankGolden, ScoresAreThoseOfTheModelCard) {
  const GoldenCopy folder(GetParam());
  const auto engine = folder.load();
  RerankRequest request = golden_request(folder);
  expect_golden_scores(folder, *engine, request);
  const std::vector<double> scores = engine->rerank(request).scores;
  request.instruction = "Something else";
  EXPECT_NE(engine->rerank(request).scores, scores);
  request.documents = {"short", std::string(2000, 'a')};
  expect_error(ErrorCode::kInvalidArgument, {"document 1", "1024"}, [&] {
    engine->rerank(request);
  });
  request.truncate = true;
  EXPECT_EQ(engine->rerank(request).truncated, 1);
}

INSTANTIATE_TEST_SUITE_P(Models, RerankGolden, ::testing::Values("reranker", "classifier"));

class CrossEncoders : public ::testing::TestWithParam<std::string> {};

// Pairs as the tokenizer joins them, with their types of tokens.
TEST_P(CrossEncoders, ScoresAreThoseOfSentenceTransformers) {
  const GoldenCopy folder(GetParam());
  const auto engine = folder.load();
  RerankRequest request = golden_request(folder);
  expect_golden_scores(folder, *engine, request);
  request.documents = {"short", std::string(100, 'a')};
  expect_error(ErrorCode::kInvalidArgument, {"document 1", "64"}, [&] { engine->rerank(request); });
  request.truncate = true;
  const RerankResult cut = engine->rerank(request);
  EXPECT_EQ(cut.truncated, 1);
  request.documents = {"a"};
  request.query = std::string(100, 'a');
  expect_error(ErrorCode::kInvalidArgument, {"document 0", "64"}, [&] { engine->rerank(request); });
  request.query = "a";
  request.instruction = "Something else";
  expect_error(ErrorCode::kInvalidArgument, {"instruction"}, [&] { engine->rerank(request); });
  expect_error(ErrorCode::kUnsupported, {"does not generate", "saker rerank"}, [&] {
    engine->generate({.prompt = {.text = "a"}});
  });
}

INSTANTIATE_TEST_SUITE_P(
    Models, CrossEncoders, ::testing::Values("bert_pairs", "xlm_roberta_pairs", "modernbert_pairs")
);

TEST(BestFirst, TiesKeepTheirOrder) {
  EXPECT_EQ(best_first({0.2, 0.9, 0.2, 1.0}), (std::vector<std::size_t>{3, 1, 0, 2}));
  EXPECT_EQ(best_first({}), std::vector<std::size_t>());
}

}  // namespace
}  // namespace saker::engine
