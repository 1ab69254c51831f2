// SPDX-License-Identifier: Apache-2.0
// The functions of saker.h, called as a program calls them that sees this header alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <saker.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr const char* kDemo = SAKER_SOURCE_DIR "/models/demo";
constexpr const char* kMessages =
    R"({"messages": [{"role": "user", "content": "What does a fox eat?"}], "max_tokens": 20})";
constexpr const char* kEndless =
    R"({"prompt": "Once upon a time", "ignore_eos": true, "max_tokens": -1, "priority": 1})";

struct Free {
  void operator()(SakerText* text) const { saker_text_free(text); }

  void operator()(SakerTokens* tokens) const { saker_tokens_free(tokens); }

  void operator()(SakerVectors* vectors) const { saker_vectors_free(vectors); }

  void operator()(SakerModel* model) const { saker_model_free(model); }

  void operator()(SakerStream* stream) const { saker_stream_free(stream); }

  void operator()(SakerEvent* event) const { saker_event_free(event); }
};

template <typename T>
using Owned = std::unique_ptr<T, Free>;

std::string bytes(const SakerText* text) {
  return {saker_text_data(text), saker_text_size(text)};
}

// A call's result, or its status and line.
template <typename T>
struct Given {
  SakerStatus status = SAKER_OK;
  Owned<T> value = {};
  std::string line = {};
};

template <typename T, typename Call>
Given<T> call(Call function) {
  T* value = nullptr;
  SakerText* message = nullptr;
  const SakerStatus status = function(&value, &message);
  const Owned<SakerText> line(message);
  return {status, Owned<T>(value), bytes(message)};
}

Given<SakerModel> load(const char* path, const char* options) {
  return call<SakerModel>([&](auto out, auto message) {
    return saker_model_load(path, options, out, message);
  });
}

Given<SakerStream> submit(SakerModel* model, const char* request) {
  return call<SakerStream>([&](auto out, auto message) {
    return saker_model_submit(model, request, out, message);
  });
}

Given<SakerEvent> next(SakerStream* stream, std::int64_t timeout_ms = -1) {
  return call<SakerEvent>([&](auto out, auto message) {
    return saker_stream_next(stream, timeout_ms, out, message);
  });
}

Json json_of(const SakerEvent* event) {
  const auto text = call<SakerText>([&](auto out, auto message) {
    return saker_event_json(event, out, message);
  });
  return Json::parse(bytes(text.value.get()));
}

// All that is left of a stream.
struct Answer {
  std::string content;
  std::vector<Json> ends;
};

Answer read(SakerStream* stream) {
  Answer answer;
  for (auto event = next(stream); event.status == SAKER_OK; event = next(stream)) {
    if (saker_event_kind(event.value.get()) == SAKER_EVENT_CONTENT) {
      answer.content += saker_event_text(event.value.get());
    }
    if (saker_event_kind(event.value.get()) == SAKER_EVENT_END) {
      answer.ends.push_back(json_of(event.value.get()).at("result"));
    }
  }
  return answer;
}

class CApi : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = load(kDemo, R"({"threads": 1})");
    ASSERT_EQ(loaded.status, SAKER_OK) << loaded.line;
    model = loaded.value.release();
  }

  static void TearDownTestSuite() { saker_model_free(model); }

  static Json text_json(SakerStatus (*function)(const SakerModel*, SakerText**, SakerText**)) {
    const auto given =
        call<SakerText>([&](auto out, auto message) { return function(model, out, message); });
    EXPECT_EQ(given.status, SAKER_OK) << given.line;
    return Json::parse(bytes(given.value.get()));
  }

  static Given<SakerText> ask(
      SakerStatus (*function)(SakerModel*, const char*, SakerText**, SakerText**),
      const char* request
  ) {
    return call<SakerText>([&](auto out, auto message) {
      return function(model, request, out, message);
    });
  }

  static Given<SakerTokens> tokenize(const std::string& text, const char* options) {
    return call<SakerTokens>([&](auto out, auto message) {
      return saker_model_tokenize(model, text.data(), text.size(), options, out, message);
    });
  }

  static SakerModel* model;
};

SakerModel* CApi::model = nullptr;

TEST_F(CApi, VersionsAndNames) {
  EXPECT_GE(saker_api_version(), static_cast<std::uint32_t>(SAKER_API_VERSION));
  EXPECT_THAT(saker_version(), testing::MatchesRegex("[0-9]+[.][0-9]+[.][0-9]+.*"));
  EXPECT_STREQ(saker_status_name(SAKER_NOT_FOUND), "not_found");
  EXPECT_STREQ(saker_status_name(static_cast<SakerStatus>(40)), "unknown");
}

TEST_F(CApi, WrongLoadsSayWhatIsWrong) {
  EXPECT_EQ(load("/no/such/model", nullptr).status, SAKER_NOT_FOUND);
  EXPECT_THAT(load("/no/such/model", nullptr).line, HasSubstr("/no/such/model"));
  EXPECT_EQ(load(kDemo, "{").status, SAKER_CORRUPT_DATA);
  EXPECT_EQ(load(kDemo, "[]").line, "options: got array, expected an object");
  EXPECT_THAT(load(kDemo, R"({"thread": 1})").line, HasSubstr("unknown option \"thread\""));
  EXPECT_THAT(load(kDemo, R"({"threads": -1})").line, HasSubstr("threads: got -1"));
  EXPECT_THAT(load(kDemo, R"({"threads": "x"})").line, HasSubstr("threads: got string"));
  EXPECT_THAT(load(kDemo, R"({"batch": 1e300})").line, HasSubstr("batch"));
  EXPECT_THAT(load(kDemo, R"({"target_itl": NaN})").line, HasSubstr("target_itl"));
  EXPECT_THAT(load(kDemo, R"({"device": "tpu"})").line, HasSubstr("expected cpu or gpu"));
  EXPECT_THAT(load(kDemo, R"({"adapter": {"a": 1}})").line, HasSubstr("adapter \"a\""));
  EXPECT_THAT(load("\xff", nullptr).line, HasSubstr("model"));
}

TEST_F(CApi, NullHandlesAreErrors) {
  EXPECT_EQ(saker_model_load(kDemo, nullptr, nullptr, nullptr), SAKER_INVALID_ARGUMENT);
  EXPECT_EQ(submit(nullptr, kMessages).status, SAKER_INVALID_ARGUMENT);
  EXPECT_EQ(next(nullptr).line, "stream: got a null pointer");
  saker_stream_cancel(nullptr);
  saker_stream_free(nullptr);
  saker_event_free(nullptr);
  saker_text_free(nullptr);
  EXPECT_STREQ(saker_text_data(nullptr), "");
  EXPECT_STREQ(saker_event_text(nullptr), "");
  EXPECT_EQ(saker_tokens_count(nullptr), 0U);
}

TEST_F(CApi, TokensAreThoseOfThePromptAndDecodeToTheText) {
  const auto tokens = tokenize("Once upon a time", nullptr);
  ASSERT_EQ(tokens.status, SAKER_OK) << tokens.line;
  const auto* const data = saker_tokens_data(tokens.value.get());
  const std::size_t count = saker_tokens_count(tokens.value.get());
  const auto prompt = call<SakerTokens>([&](auto out, auto message) {
    return saker_model_prompt_tokens(model, R"({"prompt": "Once upon a time"})", out, message);
  });
  const auto* const same = saker_tokens_data(prompt.value.get());
  EXPECT_EQ(
      std::vector<std::int32_t>(data, data + count),
      std::vector<std::int32_t>(same, same + saker_tokens_count(prompt.value.get()))
  );
  const auto text = call<SakerText>([&](auto out, auto message) {
    return saker_model_detokenize(
        model, data, count, R"({"skip_special_tokens": true})", out, message
    );
  });
  EXPECT_EQ(bytes(text.value.get()), "Once upon a time");
  EXPECT_EQ(tokenize("", R"({"add_special_tokens": false})").status, SAKER_OK);
  EXPECT_EQ(tokenize("a\xff", nullptr).status, SAKER_INVALID_ARGUMENT);
  EXPECT_THAT(tokenize("a", R"({"bos": true})").line, HasSubstr("unknown option \"bos\""));
}

TEST_F(CApi, ATextMayHoldNuls) {
  const std::string text("a\0b", 3);
  const auto tokens = tokenize(text, R"({"add_special_tokens": false})");
  ASSERT_EQ(tokens.status, SAKER_OK) << tokens.line;
  const auto back = call<SakerText>([&](auto out, auto message) {
    return saker_model_detokenize(
        model,
        saker_tokens_data(tokens.value.get()),
        saker_tokens_count(tokens.value.get()),
        nullptr,
        out,
        message
    );
  });
  EXPECT_EQ(bytes(back.value.get()), text);
}

TEST_F(CApi, TheTemplateMakesThePrompt) {
  const auto render = [](const char* request) {
    return call<SakerText>([&](auto out, auto message) {
      return saker_model_apply_template(model, request, out, message);
    });
  };
  const auto with = render(kMessages);
  ASSERT_EQ(with.status, SAKER_OK) << with.line;
  const auto without = render(
      R"({"messages": [{"role": "user", "content": "What does a fox eat?"}],
          "add_generation_prompt": false})"
  );
  EXPECT_THAT(bytes(with.value.get()), testing::StartsWith(bytes(without.value.get())));
  EXPECT_THAT(bytes(without.value.get()), HasSubstr("What does a fox eat?"));
  EXPECT_THAT(render(R"({"prompt": "x"})").line, HasSubstr("messages"));
}

TEST_F(CApi, AStreamHasTheAnswerThatGenerateHas) {
  const auto whole = ask(saker_model_generate, kMessages);
  ASSERT_EQ(whole.status, SAKER_OK) << whole.line;
  const Json result = Json::parse(bytes(whole.value.get()));
  const auto stream = submit(model, kMessages);
  ASSERT_EQ(stream.status, SAKER_OK) << stream.line;
  const Answer answer = read(stream.value.get());
  EXPECT_EQ(Json(answer.content), result.at("content"));
  ASSERT_EQ(answer.ends.size(), 1U);
  EXPECT_EQ(answer.ends[0].at("tokens"), result.at("tokens"));
  EXPECT_EQ(next(stream.value.get()).status, SAKER_END);
}

TEST_F(CApi, RequestsAreStrictlyRead) {
  EXPECT_THAT(submit(model, R"({"promt": "x"})").line, HasSubstr("unknown option \"promt\""));
  EXPECT_EQ(submit(model, R"({"promt": "x"})").status, SAKER_INVALID_ARGUMENT);
  EXPECT_EQ(submit(model, nullptr).status, SAKER_INVALID_ARGUMENT);
  EXPECT_THAT(submit(model, R"({"prompt": "x", "n": 129})").line, HasSubstr("n: got 129"));
  EXPECT_THAT(submit(model, R"({"prompt": "x", "top_p": 2})").line, HasSubstr("top_p"));
  EXPECT_THAT(submit(model, R"({"prompt": "x", "view": "y"})").line, HasSubstr("view"));
  EXPECT_THAT(
      submit(model, R"({"prompt": "x", "view": "base", "adapter": "y"})").line,
      HasSubstr("expected one of the two")
  );
  EXPECT_THAT(submit(model, R"({"prompt": "x", "prompt": "y"})").line, HasSubstr("prompt"));
}

TEST_F(CApi, SeveralAnswersAndTokens) {
  const auto stream = submit(
      model,
      R"({"prompt": "Once", "max_tokens": 4, "n": 2, "temperature": 1, "seed": 1,
          "token_events": true, "logprobs": 1})"
  );
  ASSERT_EQ(stream.status, SAKER_OK) << stream.line;
  std::vector<int> tokens(2);
  std::vector<int> ends(2);
  for (auto event = next(stream.value.get()); event.status == SAKER_OK;
       event = next(stream.value.get())) {
    const auto choice = static_cast<std::size_t>(saker_event_choice(event.value.get()));
    const Json json = json_of(event.value.get());
    if (saker_event_kind(event.value.get()) == SAKER_EVENT_TOKEN) {
      ++tokens.at(choice);
      EXPECT_EQ(json.at("kind"), "token");
      EXPECT_EQ(json.at("top").size(), 1U);
      EXPECT_LE(json.at("logprob"), 0.0);
    } else if (saker_event_kind(event.value.get()) == SAKER_EVENT_END) {
      ++ends.at(choice);
      EXPECT_EQ(json.at("result").at("logprobs").size(), 4U);
      EXPECT_EQ(json.at("result").at("text"), saker_event_text(event.value.get()));
    }
  }
  EXPECT_THAT(tokens, testing::ElementsAre(4, 4));
  EXPECT_THAT(ends, testing::ElementsAre(1, 1));
  EXPECT_THAT(
      ask(saker_model_generate, R"({"prompt": "Once", "n": 2})").line, HasSubstr("n: got 2")
  );
}

TEST_F(CApi, AWaitEndsAtItsTime) {
  const auto waiting = load(kDemo, R"({"threads": 1, "batch": 1})");
  const auto first = submit(waiting.value.get(), kEndless);
  ASSERT_EQ(first.status, SAKER_OK) << first.line;
  const auto second = submit(waiting.value.get(), R"({"prompt": "Once"})");  // Behind it.
  const SakerStatus status = next(second.value.get(), 0).status;
  EXPECT_TRUE(status == SAKER_TIMEOUT || status == SAKER_OK);
  saker_stream_cancel(second.value.get());
  EXPECT_EQ(read(second.value.get()).ends.size(), 1U);
}

TEST_F(CApi, CancelledStreamsEndWithWhatTheyHave) {
  const auto stream = submit(model, kEndless);
  saker_stream_cancel(stream.value.get());
  saker_stream_cancel(stream.value.get());
  const Answer answer = read(stream.value.get());
  ASSERT_EQ(answer.ends.size(), 1U);
  EXPECT_EQ(answer.ends[0].at("finish_reason"), "cancelled");
  EXPECT_EQ(answer.ends[0].at("text"), answer.content);
}

TEST_F(CApi, AStreamOutlivesTheHandleOfItsModel) {
  auto loaded = load(kDemo, R"({"threads": 1})");
  const auto stream = submit(loaded.value.get(), kMessages);
  loaded.value.reset();
  EXPECT_EQ(read(stream.value.get()).ends.size(), 1U);
}

TEST_F(CApi, ReadyIsCalledForEvents) {
  const auto stream = submit(model, kMessages);
  std::atomic<int> calls = 0;
  SakerText* message = nullptr;
  const auto count = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
  EXPECT_EQ(saker_stream_on_ready(stream.value.get(), count, &calls, &message), SAKER_OK);
  read(stream.value.get());
  EXPECT_GT(calls, 0);
  EXPECT_EQ(saker_stream_on_ready(stream.value.get(), nullptr, nullptr, &message), SAKER_OK);
}

TEST_F(CApi, FailedAnswersAreEvents) {
  const auto stream = submit(model, R"({"prompt": "x", "adapter": "/no/such/adapter"})");
  if (stream.status != SAKER_OK) {
    EXPECT_EQ(stream.status, SAKER_NOT_FOUND) << stream.line;
    return;
  }
  auto event = next(stream.value.get());
  ASSERT_EQ(event.status, SAKER_OK) << event.line;
  EXPECT_EQ(saker_event_kind(event.value.get()), SAKER_EVENT_FAILURE);
  EXPECT_EQ(saker_event_status(event.value.get()), SAKER_NOT_FOUND);
  EXPECT_THAT(saker_event_text(event.value.get()), HasSubstr("/no/such/adapter"));
  EXPECT_EQ(json_of(event.value.get()).at("error").at("code"), "not_found");
}

TEST_F(CApi, ThreadsShareAModel) {
  const std::string expected = read(submit(model, kMessages).value.get()).content;
  std::vector<std::string> answers(4);
  std::vector<std::thread> threads;
  threads.reserve(answers.size());
  for (std::string& answer : answers) {
    threads.emplace_back([&answer] { answer = read(submit(model, kMessages).value.get()).content; }
    );
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_THAT(answers, testing::Each(expected));
}

TEST_F(CApi, FactsAndStatistics) {
  const Json facts = text_json(saker_model_facts);
  EXPECT_EQ(facts.at("path"), kDemo);
  EXPECT_TRUE(facts.at("has_chat_template"));
  EXPECT_GT(facts.at("context_length"), 0);
  const Json statistics = text_json(saker_model_statistics);
  EXPECT_TRUE(statistics.at("prefix_cache").contains("hits"));
  EXPECT_GE(statistics.at("running"), 0);
}

TEST_F(CApi, ScoresAddUp) {
  const auto given =
      ask(saker_model_score,
          R"({"prompt": "Once upon a", "completion": " time", "views": ["base"]})");
  ASSERT_EQ(given.status, SAKER_OK) << given.line;
  const Json base = Json::parse(bytes(given.value.get())).at("views").at("base");
  EXPECT_LT(base.at("sum"), 0.0);
  EXPECT_TRUE(base.at("is_greedy").is_boolean());
  EXPECT_THAT(ask(saker_model_score, R"({"text": "x", "kv_bits": 5})").line, HasSubstr("kv_bits"));
  EXPECT_THAT(ask(saker_model_score, R"({"txt": "x"})").line, HasSubstr("unknown option \"txt\""));
}

TEST_F(CApi, VectorsAreRowsOfUnitLength) {
  const auto embed = [](const char* request) {
    return call<SakerVectors>([&](auto out, auto message) {
      return saker_model_embed(model, request, out, message);
    });
  };
  const auto given = embed(R"({"inputs": ["A fox", [5, 6]], "normalize": true})");
  ASSERT_EQ(given.status, SAKER_OK) << given.line;
  EXPECT_EQ(saker_vectors_count(given.value.get()), 2U);
  EXPECT_GT(saker_vectors_tokens(given.value.get()), 2);
  const std::size_t size = saker_vectors_dimensions(given.value.get());
  const float* const data = saker_vectors_data(given.value.get());
  for (std::size_t row = 0; row < 2; ++row) {
    double sum = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
      sum += std::pow(data[row * size + i], 2);
    }
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
  EXPECT_THAT(embed("{}").line, HasSubstr("inputs"));
  EXPECT_THAT(embed(R"({"inputs": [1]})").line, HasSubstr("inputs: got number"));
  EXPECT_THAT(embed(R"({"inputs": ["x"], "pooling": "max"})").line, HasSubstr("last, mean, cls"));
}

TEST(CApiAdapters, AreLoadedByNameAndListed) {
  const std::string goldens = SAKER_SOURCE_DIR "/tests/golden/";
  const auto model = load((goldens + "qwen3").c_str(), R"({"threads": 1})");
  ASSERT_EQ(model.status, SAKER_OK) << model.line;
  const auto add = [&](const char* name, const std::string& path) {
    SakerText* message = nullptr;
    const SakerStatus status =
        saker_model_add_adapter(model.value.get(), name, path.c_str(), &message);
    const Owned<SakerText> line(message);
    return std::pair(status, bytes(message));
  };
  EXPECT_EQ(add("x", goldens + "nothing").first, SAKER_NOT_FOUND);
  EXPECT_EQ(add("base", goldens).first, SAKER_INVALID_ARGUMENT);
  EXPECT_EQ(add("", goldens).first, SAKER_INVALID_ARGUMENT);
  const auto added = add("mine", goldens + "adapters/mlx_lora");
  ASSERT_EQ(added.first, SAKER_OK) << added.second;
  EXPECT_EQ(add("mine", goldens + "adapters/mlx_lora").first, SAKER_INVALID_ARGUMENT);
  const auto list = call<SakerText>([&](auto out, auto message) {
    return saker_model_adapters(model.value.get(), out, message);
  });
  EXPECT_EQ(Json::parse(bytes(list.value.get())).at(0).at("name"), "mine");
  const auto scores = call<SakerText>([&](auto out, auto message) {
    return saker_model_score(
        model.value.get(),
        R"({"tokens": [1, 2, 3], "views": ["base", "mine", "mine@0"]})",
        out,
        message
    );
  });
  ASSERT_EQ(scores.status, SAKER_OK) << scores.line;
  const Json views = Json::parse(bytes(scores.value.get())).at("views");
  EXPECT_NE(views.at("base").at("sum"), views.at("mine").at("sum"));
  EXPECT_EQ(views.at("base").at("sum"), views.at("mine@0").at("sum"));
}

}  // namespace
