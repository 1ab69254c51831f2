// SPDX-License-Identifier: Apache-2.0
#pragma once

// Engines over the tiny checkpoints of tests/golden, and how to run and compare requests.

#include "saker/base/json/json.h"
#include "saker/engine/engine.h"

#include "tests/text/golden_tokenizers.h"
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::engine {

// A model folder: a golden checkpoint and a golden tokenizer.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& golden)
      : path_(
            std::filesystem::path(::testing::TempDir()) /
            ("engine_test_" + golden + std::to_string(getpid()))
        ) {
    std::filesystem::create_directories(path_);
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(
          std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / golden / file,
          path_ / file,
          std::filesystem::copy_options::overwrite_existing
      );
    }
    write("tokenizer.json", text::GoldenTokenizer("byte_level_bpe").golden.at("tokenizer"));
  }

  ~ModelFolder() { std::filesystem::remove_all(path_); }

  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;

  void write(const std::string& name, const Json& content) const {
    std::ofstream(path_ / name) << content.dump();
  }

  Json read(const std::string& name) const { return read_json_file(path_ / name); }

  std::unique_ptr<Engine> load(const EngineOptions& options = {}) const {
    return Engine::load(path_, options);
  }

 private:
  std::filesystem::path path_;
};

// Requests of many lengths, samplers and ends.
inline std::vector<Request> mixed_requests(int count) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.prompt.tokens.emplace();
    const int length = i % 5 == 0 ? 70 + i : 1 + i * 7 % 20;
    for (int t = 0; t < length; ++t) {
      request.prompt.tokens->push_back((t * 31 + i * 17) % 96);
    }
    request.output.max_tokens = 1 + i * 5 % 23;
    request.output.ignore_eos = i % 2 == 0;
    request.output.logprobs = i % 4 - 1;
    request.sampling.temperature = i % 3 * 0.6;
    request.sampling.top_p = i % 4 == 1 ? 0.8 : 1.0;
    request.sampling.top_k = i % 4 == 2 ? 12 : 0;
    request.sampling.repetition_penalty = i % 5 == 3 ? 1.3 : 1.0;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    if (i % 7 == 6) {
      request.output.stop = {"e"};
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

inline std::vector<GenerateResult> run_together(
    Engine& engine, const std::vector<Request>& requests
) {
  std::vector<Stream> streams;
  streams.reserve(requests.size());
  for (const Request& request : requests) {
    streams.push_back(engine.submit(request));
  }
  std::vector<GenerateResult> results;
  results.reserve(streams.size());
  for (const Stream& stream : streams) {
    results.push_back(stream.result());
  }
  return results;
}

inline void expect_same(const GenerateResult& one, const GenerateResult& other) {
  EXPECT_EQ(one.tokens, other.tokens);
  EXPECT_EQ(one.text, other.text);
  EXPECT_EQ(one.finish_reason, other.finish_reason);
  ASSERT_EQ(one.logprobs.size(), other.logprobs.size());
  for (std::size_t i = 0; i < one.logprobs.size(); ++i) {
    EXPECT_EQ(one.logprobs[i].logprob, other.logprobs[i].logprob);
    EXPECT_EQ(one.logprobs[i].top, other.logprobs[i].top);
  }
}

}  // namespace saker::engine
