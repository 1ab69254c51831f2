// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/pool/preset.h"

#include "saker/base/error.h"
#include "saker/engine/pool/model_details.h"
#include "saker/engine/pool/model_pool.h"

#include "tests/engine/model_folder.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stop_token>
#include <vector>

namespace saker::engine {
namespace {

using testing::expect_error;

Request request_of(int prompt_tokens) {
  Request request;
  request.prompt.tokens = std::vector<std::int32_t>(static_cast<std::size_t>(prompt_tokens), 1);
  request.output.max_tokens = 50;
  request.output.ignore_eos = true;
  return request;
}

TEST(PresetTest, DefaultsOfAModel) {
  const ModelFolder folder("qwen3");
  const EngineOptions options{.threads = 1, .prefix_cache = 1000};
  const auto path = folder.load(options)->facts().path;
  const Preset preset = {.sampling = {{"temperature", 0.25}, {"top_k", 7}}, .context = 20};
  check_preset(preset);
  const auto model = with_preset(engine_loader(path, options)({}), preset);
  EXPECT_EQ(model->recommended_sampling().temperature, 0.25);
  EXPECT_EQ(model->recommended_sampling().top_k, 7);
  EXPECT_EQ(model->facts().context_length, 20);
  EXPECT_EQ(model->submit(request_of(15)).result().tokens.size(), 5U);
  expect_error(ErrorCode::kInvalidArgument, {"the prompt has 20 tokens", "20 tokens long"}, [&] {
    model->submit(request_of(20));
  });
}

TEST(PresetTest, WrongOnes) {
  expect_error(ErrorCode::kInvalidArgument, {"heat"}, [] {
    check_preset({.sampling = {{"heat", 1}}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"temperature"}, [] {
    check_preset({.sampling = {{"temperature", "hot"}}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"temperature"}, [] {
    check_preset({.sampling = {{"temperature", -1}}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"max_tokens"}, [] {
    check_preset({.sampling = {{"max_tokens", 1}}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"kv_bits", "5"}, [] { check_preset({.kv_bits = 5}); });
}

TEST(PresetTest, AStoppedLoadEnds) {
  const ModelFolder folder("qwen3");
  const EngineOptions options{.threads = 1, .prefix_cache = 1000};
  const auto path = folder.load(options)->facts().path;
  std::stop_source stop;
  stop.request_stop();
  expect_error(ErrorCode::kCancelled, {"stopped"}, [&] {
    engine_loader(path, options)(stop.get_token());
  });
}

TEST(ModelDetailsTest, FactsAreThoseOfTheLoadedModel) {
  const ModelFolder folder("qwen3");
  const auto engine = folder.load({.threads = 1});
  const ModelDetails details = read_model_details(engine->facts().path);
  EXPECT_EQ(details.model_type, engine->facts().model_type);
  EXPECT_EQ(details.context_length, engine->facts().context_length);
  EXPECT_EQ(details.vocab_size, engine->facts().vocab_size);
  EXPECT_EQ(details.format, "safetensors");
  EXPECT_GT(details.parameters, 1000);
  EXPECT_EQ(
      details.file_bytes, std::filesystem::file_size(engine->facts().path / "model.safetensors")
  );
  EXPECT_GT(details.modified, 1'000'000'000);
  EXPECT_FALSE(details.takes_tools);
  expect_error(ErrorCode::kNotFound, {"/no/such"}, [] { read_model_details("/no/such"); });
}

TEST(ModelDetailsTest, ABrokenModelHasFewFacts) {
  const ModelFolder folder("qwen3");
  const auto path = folder.load({.threads = 1})->facts().path;
  std::filesystem::resize_file(path / "model.safetensors", 100);
  const ModelDetails details = read_model_details(path);
  EXPECT_EQ(details.path, path);
  EXPECT_EQ(details.parameters, 0);
}

}  // namespace
}  // namespace saker::engine
