// SPDX-License-Identifier: Apache-2.0
// Any texts as the files beside a tokenizer.json: tokenizer_config.json, generation_config.json,
// config.json, special_tokens_map.json, added_tokens.json. Warnings or typed errors, and ids, texts
// and sampling options that make sense.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/engine/prompts.h"
#include "saker/sample/options.h"
#include "saker/text/chat_template.h"
#include "saker/text/eos_tokens.h"
#include "saker/text/generation_config.h"
#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"

#include "tests/fuzz/input.h"
#include "tests/support/temporary_dir.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>

namespace {

using saker::fuzz::expect;

constexpr std::string_view kTokenizer = R"({
  "version": "1.0",
  "added_tokens": [
    {"id": 4, "content": "</s>", "special": true, "single_word": false, "lstrip": false,
     "rstrip": false, "normalized": false}
  ],
  "pre_tokenizer": {"type": "Whitespace"},
  "model": {
    "type": "WordLevel", "vocab": {"<unk>": 0, "a": 1, "b": 2, "<s>": 3}, "unk_token": "<unk>"
  }
})";

void read_generation(const std::filesystem::path& dir) {
  const auto generation = saker::text::read_generation_config(dir);
  const auto sampling = saker::engine::sampling_from(generation.values);
  saker::sample::check_options(sampling.options, std::numeric_limits<int>::max());
}

void read_texts(const std::filesystem::path& dir) {
  const auto config = saker::text::load_tokenizer_config(dir);
  const auto tokenizer = saker::text::Tokenizer::parse(kTokenizer, "fuzz", config);
  const auto eos = saker::text::load_eos_tokens(dir, tokenizer.get(), config);
  expect(std::ranges::is_sorted(eos) && std::ranges::adjacent_find(eos) == eos.end());
  expect(std::ranges::all_of(eos, [](std::int32_t id) { return id >= 0; }));
  static_cast<void>(tokenizer->decode(tokenizer->encode("a </s> b")));
  if (const auto chat = saker::text::ChatTemplate::load(dir, config)) {
    chat->check();
    static_cast<void>(chat->switches_thinking());
    static_cast<void>(chat->render({{{"role", "user"}, {"content", "a"}}}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const saker::testing::TemporaryDir dir;
  saker::fuzz::Input input(data, size);
  for (const std::string_view name :
       {"tokenizer_config.json",
        "generation_config.json",
        "config.json",
        "special_tokens_map.json",
        "added_tokens.json"}) {
    const std::string_view text = input.text();
    if (text.empty()) {
      std::filesystem::remove(dir.path() / name);
    } else {
      dir.write(name, text);
    }
  }
  try {
    read_generation(dir.path());
    read_texts(dir.path());
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
