// SPDX-License-Identifier: Apache-2.0
#pragma once

// A runner over a model without weights, for tests.

#include "saker/base/error.h"
#include "saker/engine/runner.h"

#include "tests/support/fake_model.h"
#include "tests/text/golden_tokenizers.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {

using saker::testing::FakeModel;
using saker::testing::FakeModelOptions;
using Ids = std::vector<std::int32_t>;

inline std::shared_ptr<const Prompts> make_prompts(const Ids& eos_tokens = {}) {
  Prompts::Parts parts;
  parts.tokenizer = text::GoldenTokenizer("byte_level_bpe").tokenizer;
  parts.eos_tokens = eos_tokens;
  return std::make_shared<const Prompts>(std::move(parts));
}

inline Runner::PrefixOptions no_prefixes() {
  Runner::PrefixOptions options;
  options.cache.byte_budget = 0;
  return options;
}

inline std::unique_ptr<Runner> make_runner(
    FakeModelOptions options = {},
    const Ids& eos_tokens = {},
    const Runner::PrefixOptions& prefixes = no_prefixes()
) {
  const auto prompts = make_prompts(eos_tokens);
  options.vocab_size = prompts->tokenizer()->vocab_size();
  return std::make_unique<Runner>(
      [&] { return prompts; },
      Runner::Options{.prefixes = prefixes},
      [&] { return std::make_unique<const FakeModel>(options); }
  );
}

// A request that is under way, and all that is said about it.
struct Running {
  Stream stream;
  std::string text = {};
  std::vector<int> progress = {};

  Running(Runner& runner, Request request) : stream(runner.submit(std::move(request))) {}

  GenerateResult wait() {
    while (const std::optional<Event> event = stream.next()) {
      if (const auto* prompt = std::get_if<PromptProgress>(&event->what)) {
        progress.push_back(prompt->done);
      } else if (const auto* piece = std::get_if<text::ContentPiece>(&event->what)) {
        text += piece->text;
      }
    }
    GenerateResult result = stream.result();
    EXPECT_EQ(result.text, text);
    return result;
  }
};

inline GenerateResult run(Runner& runner, Request request) {
  return Running(runner, std::move(request)).wait();
}

inline Request request_of(Ids tokens, int max_tokens = 20) {
  Request request;
  request.prompt.tokens = std::move(tokens);
  request.output.max_tokens = max_tokens;
  return request;
}

inline ErrorCode code_of(Runner& runner, Request request) {
  try {
    run(runner, std::move(request));
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kInternal;
}

}  // namespace saker::engine
