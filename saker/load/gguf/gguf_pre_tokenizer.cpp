// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace saker::load::gguf {
namespace {

using Texts = std::span<const std::string_view>;
using std::string_view_literals::operator""sv;

constexpr std::array kGpt2Names = {
    "gpt-2"sv,
    "default"sv,
    "mpt"sv,
    "olmo"sv,
    "phi-2"sv,
    "modern-bert"sv,
    "exaone4"sv,
    "trillion"sv,
    "gigachat"sv,
    "mellum"sv,
};
constexpr std::array kGpt2 = {
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"sv,
};

constexpr std::array kStarcoderNames = {
    "smollm"sv,
    "starcoder"sv,
    "refact"sv,
    "command-r"sv,
    "codeshell"sv,
    "exaone"sv,
    "minerva-7b"sv,
};
constexpr std::array kStarcoder = {R"(\p{N})"sv, kGpt2[0]};

constexpr std::array kLlama3Names = {
    "llama-bpe"sv,
    "llama3"sv,
    "llama-v3"sv,
    "falcon3"sv,
    "falcon-h1"sv,
    "pixtral"sv,
    "lfm2"sv,
};
constexpr std::array kLlama3 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv,
};

// Llama 3's pattern, but words are merged as usual.
constexpr std::array kDbrxNames = {"dbrx"sv, "smaug-bpe"sv, "chatglm-bpe"sv};
constexpr std::array kGlm4Names = {"glm4"sv};

constexpr std::array kQwen2Names = {
    "qwen2"sv,
    "deepseek-r1-qwen"sv,
    "stablelm2"sv,
    "megrez"sv,
    "hunyuan"sv,
    "solar-open"sv,
};
constexpr std::array kQwen2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv,
};

constexpr std::array kQwen35Names = {"qwen35"sv};
constexpr std::array kQwen35 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv,
};

constexpr std::array kFalconNames = {"falcon"sv};
constexpr std::array kFalcon = {R"([\p{P}\$\+<=>\^~\|`]+)"sv, kGpt2[0], R"([0-9][0-9][0-9])"sv};

constexpr std::array kDeepSeekCoderNames = {"deepseek-coder"sv};
constexpr std::array kDeepSeekCoder = {
    R"([\r\n])"sv,
    R"(\s?\p{L}+)"sv,
    R"(\s?\p{P}+)"sv,
    R"([一-龥ࠀ-一가-퟿]+)"sv,
    R"(\p{N})"sv,
};

constexpr std::array kDeepSeek3Names = {"deepseek-v3"sv, "hunyuan-dense"sv};
constexpr std::array kDeepSeek3 = {
    R"(\p{N}{1,3})"sv,
    "[一-龥぀-ゟ゠-ヿ]+"sv,
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv,
};

constexpr std::array kTekkenNames = {"tekken"sv};
constexpr std::array kTekken = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv,
};

constexpr std::array kGpt4oNames = {"gpt-4o"sv, "llama4"sv, "kanana2"sv};
constexpr std::array kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"sv,
};

constexpr std::array<PreTokenizer, 12> kTable = {{
    {kGpt2Names, kGpt2},
    {kStarcoderNames, kStarcoder},
    {kLlama3Names, kLlama3, true, true},
    {kDbrxNames, kLlama3},
    {kGlm4Names, kLlama3, true},
    {kQwen2Names, kQwen2},
    {kQwen35Names, kQwen35},
    {kFalconNames, kFalcon},
    {kDeepSeekCoderNames, kDeepSeekCoder},
    {kDeepSeek3Names, kDeepSeek3},
    {kTekkenNames, kTekken, true, true},
    {kGpt4oNames, kGpt4o},
}};

bool is_named(const PreTokenizer& row, std::string_view name) {
  return std::ranges::find(row.names, name) != row.names.end();
}

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() {
  return kTable;
}

std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& row : kTable) {
    if (is_named(row, name)) {
      return row;
    }
  }
  return std::nullopt;
}

}  // namespace saker::load::gguf
