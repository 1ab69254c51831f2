// SPDX-License-Identifier: Apache-2.0
// A program that embeds a model: hello MODEL_DIR [PROMPT] prints one answer, and its speed on
// stderr.
#include "saker/engine/engine.h"

#include <cstdio>
#include <exception>
#include <string>

namespace {

int answer(const std::string& model, const std::string& prompt) {
  const auto engine = saker::engine::Engine::load(model, {});

  saker::engine::Request request;
  request.prompt.text = prompt;
  request.output.max_tokens = 100;
  const auto result = engine->generate(request);

  std::printf("%s\n", result.text.c_str());
  std::fprintf(stderr, "%.1f tokens/s\n", result.stats.generation_tps);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: hello MODEL_DIR [PROMPT]\n");
    return 2;
  }
  try {
    return answer(argv[1], argc > 2 ? argv[2] : "Once upon a time");
  } catch (const std::exception& error) {  // saker::Error is one.
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
