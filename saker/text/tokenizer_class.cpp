// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer_class.h"

#include "saker/base/error.h"

#include <algorithm>
#include <array>
#include <string>

namespace saker::text {
namespace {

constexpr std::array kEndOfText{
    DefaultToken{"bos_token", "<|endoftext|>"},
    DefaultToken{"eos_token", "<|endoftext|>"},
    DefaultToken{"unk_token", "<|endoftext|>"},
};
constexpr std::array kQwen{
    DefaultToken{"eos_token", "<|endoftext|>"},
    DefaultToken{"unk_token", "<|endoftext|>"},
    DefaultToken{"pad_token", "<|endoftext|>"},
};
constexpr std::array kNeoX{
    DefaultToken{"bos_token", "<|endoftext|>"},
    DefaultToken{"eos_token", "<|endoftext|>"},
    DefaultToken{"unk_token", "<|endoftext|>"},
    DefaultToken{"pad_token", "<|padding|>"},
};
constexpr std::array kGemma{
    DefaultToken{"bos_token", "<bos>"},
    DefaultToken{"eos_token", "<eos>"},
    DefaultToken{"unk_token", "<unk>"},
    DefaultToken{"pad_token", "<pad>"},
    DefaultToken{"mask_token", "<mask>"},
};
constexpr std::array kLlama{
    DefaultToken{"bos_token", "<s>"},
    DefaultToken{"eos_token", "</s>"},
    DefaultToken{"unk_token", "<unk>"},
};
constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Classes that read tokenizer.json and add nothing are not listed.
constexpr TokenizerClass kPlain{};
constexpr std::array kClasses{
    TokenizerClass{"CodeGenTokenizer", kEndOfText, true, false, true, {}, false},
    TokenizerClass{"GPT2Tokenizer", kEndOfText, true, false, true, {}, false},
    TokenizerClass{"GPTNeoXTokenizer", kNeoX, true, false, true, {}, true},
    TokenizerClass{"GemmaTokenizer", kGemma, true, false, false, {}, false},
    TokenizerClass{"LlamaTokenizer", kLlama, true, false, false, {}, false},
    TokenizerClass{"Qwen2Tokenizer", kQwen, true, true, true, kQwen2Words, true},
    TokenizerClass{"Qwen3_5Tokenizer", kQwen, true, false, true, kQwen35Words, true},
};

// The class of a model type. `always`: it overrides tokenizer_config.json, since published files
// name wrong classes.
struct ModelRow {
  std::string_view model_type;
  std::string_view name;
  bool always = false;
};

constexpr std::array kModels{
    ModelRow{"gemma", "GemmaTokenizer"},
    ModelRow{"gemma2", "GemmaTokenizer"},
    ModelRow{"gemma3", "GemmaTokenizer"},
    ModelRow{"gemma3_text", "GemmaTokenizer"},
    ModelRow{"mistral", ""},
    ModelRow{"olmoe", "GPTNeoXTokenizer"},
    ModelRow{"qwen2", "Qwen2Tokenizer", true},
    ModelRow{"qwen2_moe", "Qwen2Tokenizer"},
    ModelRow{"qwen3", "Qwen2Tokenizer"},
    ModelRow{"qwen3_5", "Qwen3_5Tokenizer", true},
    ModelRow{"qwen3_5_text", "Qwen3_5Tokenizer"},
    ModelRow{"qwen3_5_moe", "Qwen3_5Tokenizer", true},
    ModelRow{"qwen3_5_moe_text", "Qwen3_5Tokenizer"},
    ModelRow{"qwen3_moe", "Qwen2Tokenizer"},
    ModelRow{"qwen3_next", "Qwen2Tokenizer"},
    ModelRow{"qwen3_vl_moe", "Qwen2Tokenizer"},
};

const TokenizerClass& class_named(std::string_view name) {
  const auto* const found = std::ranges::find(kClasses, name, &TokenizerClass::name);
  return found == kClasses.end() ? kPlain : *found;
}

Json read_config(const ModelTexts& texts) {
  try {
    return texts.read_json("config.json");
  } catch (const Error&) {
    return nullptr;  // Code that needs it reports the error.
  }
}

std::string text_of(const Json& object, std::string_view key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

bool speaks_of_bytes(const ModelTexts& texts) {
  try {
    return texts.read("tokenizer.json", kMaxJsonBytes).find("\"ByteLevel\"") != std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

const TokenizerClass& tokenizer_class(const ModelTexts& texts, const Json& tokenizer_config) {
  const Json config = read_config(texts);
  std::string named = text_of(tokenizer_config, "tokenizer_class");
  if (named.empty()) {
    named = text_of(config, "tokenizer_class");
  }
  if (named.ends_with("Fast")) {
    named.resize(named.size() - std::string_view("Fast").size());
  }
  const auto* const model =
      std::ranges::find(kModels, text_of(config, "model_type"), &ModelRow::model_type);
  const bool is_known = model != kModels.end();
  // Llama's class is for SentencePiece, but many published files name it for vocabularies of bytes.
  if (named == "LlamaTokenizer" && !(is_known && model->always) && speaks_of_bytes(texts)) {
    return kPlain;
  }
  if (!is_known) {
    return class_named(named);
  }
  if (named.empty() || model->always) {
    return class_named(model->name);
  }
  return model->name.empty() ? kPlain : class_named(named);
}

}  // namespace saker::text
