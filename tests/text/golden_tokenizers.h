// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tiny tokenizers of golden/ (made by make_goldens.py) with what `tokenizers` says about them.

#include "saker/base/json/json.h"
#include "saker/text/tokenizer.h"

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace saker::text {

inline constexpr std::array kGoldenNames{
    "byte_level_bpe",
    "llama_bpe",
    "unigram",
    "word_piece",
    "suffix_bpe",
    "ctc",
    "words",
    "fuse_then_replace"
};

struct GoldenTokenizer {
  Json golden;
  std::shared_ptr<const Tokenizer> tokenizer;

  explicit GoldenTokenizer(const std::string& name)
      : golden(read_json_file(
            std::filesystem::path(SAKER_SOURCE_DIR) / "tests/text/golden" / (name + ".json")
        )),
        tokenizer(Tokenizer::parse(golden.at("tokenizer").dump(), name)) {}
};

}  // namespace saker::text
