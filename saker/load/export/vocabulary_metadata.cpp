// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/vocabulary_metadata.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/export/special_tokens.h"
#include "saker/load/export/split_patterns.h"
#include "saker/load/export/template_metadata.h"
#include "saker/load/export/tokenizer_merges.h"
#include "saker/load/export/vocabulary_tokens.h"
#include "saker/text/tokenizer.h"
#include "saker/text/tokenizer_config.h"
#include "saker/text/vocabulary_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace saker::load::gguf {
namespace {

constexpr std::string_view kPieceSpace = "\xE2\x96\x81";

// tokenizer.json, or what stands for it.
std::optional<Json> read_tokenizer(
    const text::ModelTexts& texts, const text::TokenizerConfig& config
) {
  constexpr std::string_view kFile = "tokenizer.json";
  if (texts.has(kFile)) {
    return texts.read_json(kFile);
  }
  if (config.kind != nullptr && text::has_vocabulary_files(texts, *config.kind)) {
    return parse_json(text::read_vocabulary_files(texts, *config.kind), kFile);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_step(std::string_view member, const Json& step) {
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "tokenizer.json: {} has {}, which GGUF files cannot describe",
          member,
          quote(step.dump(-1, ' ', false, Json::error_handler_t::replace))
      )
  );
}

// A member's steps: those of a sequence, the only one, or none.
std::vector<Json> steps_of(const Json& tokenizer, std::string_view member, std::string_view list) {
  const Json* value = find_member(tokenizer, member);
  if (value == nullptr || value->is_null()) {
    return {};
  }
  const Json* parts = find_member(*value, list);
  if (parts != nullptr && parts->is_array()) {
    return {parts->begin(), parts->end()};
  }
  return {*value};
}

std::string step_type(const Json& step) {
  return step.is_object() ? json_string(step, "type", "") : std::string();
}

bool replaces_spaces(const Json& step) {
  const Json* pattern = find_member(step, "pattern");
  const Json* text = pattern != nullptr ? find_member(*pattern, "String") : nullptr;
  return step_type(step) == "Replace" && text != nullptr && *text == " " &&
         json_string(step, "content", "") == kPieceSpace;
}

// Composed characters are the only other form of text that is common; files don't say it.
void check_byte_normalizer(const Json& tokenizer, std::vector<std::string>& notes) {
  for (const Json& step : steps_of(tokenizer, "normalizer", "normalizers")) {
    if (step_type(step) != "NFC") {
      refuse_step("normalizer", step);
    }
    notes.emplace_back(
        "the tokenizer composes characters (NFC), which programs that read GGUF files do not do"
    );
  }
}

// How spaces of a text become parts of pieces.
class SpaceRule {
 public:
  explicit SpaceRule(const Json& tokenizer) {
    for (const Json& step : steps_of(tokenizer, "normalizer", "normalizers")) {
      if (replaces_spaces(step)) {
        replaces_ = true;
      } else if (step_type(step) == "Prepend" && json_string(step, "prepend", "") == kPieceSpace) {
        prefixes_ = true;
      } else {
        refuse_step("normalizer", step);
      }
    }
    for (const Json& step : steps_of(tokenizer, "pre_tokenizer", "pretokenizers")) {
      if (!is_idle_split(step) && !take_metaspace(step)) {
        refuse_step("pre_tokenizer", step);
      }
    }
    require(
        replaces_,
        ErrorCode::kUnsupported,
        "tokenizer.json: spaces stay spaces, a GGUF file of this vocabulary replaces them"
    );
  }

  // Texts get a space in front.
  bool prefixes() const { return prefixes_; }

  // Only at the beginning, or unless they have one.
  bool prefixes_sometimes() const { return prefixes_sometimes_; }

 private:
  // Splits at spaces, of which there are none.
  bool is_idle_split(const Json& step) const {
    const Json* pattern = find_member(step, "pattern");
    const Json* text = pattern != nullptr ? find_member(*pattern, "String") : nullptr;
    return replaces_ && step_type(step) == "Split" && text != nullptr && *text == " ";
  }

  bool take_metaspace(const Json& step) {
    if (step_type(step) != "Metaspace" || json_string(step, "replacement", "") != kPieceSpace ||
        json_bool(step, "split", true)) {
      return false;
    }
    const bool old_flag = json_bool(step, "add_prefix_space", true);
    prefixes_sometimes_ =
        json_string(step, "prepend_scheme", old_flag ? "always" : "never") != "never";
    prefixes_ = prefixes_ || prefixes_sometimes_;
    replaces_ = true;
    return true;
  }

  bool replaces_ = false;
  bool prefixes_ = false;
  bool prefixes_sometimes_ = false;
};

std::optional<unsigned> byte_of(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') {
    return std::nullopt;
  }
  const auto high = kDigits.find(text[3]);
  const auto low = kDigits.find(text[4]);
  return high != std::string_view::npos && low != std::string_view::npos
             ? std::optional(static_cast<unsigned>(high * kDigits.size() + low))
             : std::nullopt;
}

// The member `model`. The engine has more kinds; files have BPE without affixes.
const Json& checked_model(const Json& tokenizer) {
  const Json* model = find_member(tokenizer, "model");
  require(
      model != nullptr && model->is_object(),
      ErrorCode::kCorruptData,
      "tokenizer.json: has no object 'model'"
  );
  // Old files leave out the type.
  const std::string type = json_string(*model, "type", model->contains("merges") ? "BPE" : "");
  require(
      type == "BPE",
      ErrorCode::kUnsupported,
      "tokenizer.json: model has type {}, GGUF files are written for BPE",
      quote(type)
  );
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    require(
        json_string(*model, affix, "").empty(),
        ErrorCode::kUnsupported,
        "tokenizer.json: model has a {}, which GGUF files cannot describe",
        affix
    );
  }
  return *model;
}

class VocabularyMaker {
 public:
  // `model`: the tokenizer's.
  VocabularyMaker(const Json& tokenizer, const Json& model, FileTokens tokens)
      : tokenizer_(tokenizer), model_(model), tokens_(std::move(tokens)) {}

  VocabularyMetadata make() {
    json_bool(model_, "byte_fallback", false) ? add_pieces() : add_bytes();
    if (tokens_.left_out > 0) {
      note(fmt::format(
          "{} tokens have ids beyond the model's {} and are left out",
          tokens_.left_out,
          tokens_.list.size()
      ));
    }
    if (tokens_.with_flags > 0) {
      note(fmt::format(
          "{} added tokens take spaces around them or whole words only, which GGUF files do not "
          "say",
          tokens_.with_flags
      ));
    }
    return std::move(result_);
  }

 private:
  void note(std::string line) { result_.notes.push_back(std::move(line)); }

  void put(std::string_view key, MetadataValue value) {
    result_.pairs.push_back({fmt::format("tokenizer.ggml.{}", key), std::move(value)});
  }

  void add_bytes() {
    check_byte_normalizer(tokenizer_, result_.notes);
    put("model", std::string("gpt2"));
    put("pre", std::string(split_name(tokenizer_)));
    std::vector<std::string> merges;
    for (const PiecePair& merge : read_merges(model_)) {
      if ((merge.left + merge.right).find(' ') != std::string::npos) {
        throw Error(
            ErrorCode::kUnsupported,
            fmt::format(
                "tokenizer.json: merge of {} and {} has a space, GGUF files have it between them",
                quote(merge.left),
                quote(merge.right)
            )
        );
      }
      merges.push_back(fmt::format("{} {}", merge.left, merge.right));
    }
    add_tokens();
    put("merges", std::move(merges));
  }

  void add_pieces() {
    require(
        !json_bool(model_, "ignore_merges", false),
        ErrorCode::kUnsupported,
        "tokenizer.json: model has ignore_merges with bytes as a fallback, which GGUF files cannot "
        "describe"
    );
    const SpaceRule spaces(tokenizer_);
    if (spaces.prefixes_sometimes()) {
      note(
          "programs that read GGUF files put a space before every text, also behind a special "
          "token or before another space; the tokenizer does not"
      );
    }
    mark_bytes();
    mark_unknown(json_string(model_, "unk_token", ""));
    std::vector<float> scores = scores_of(read_merges(model_));
    put("model", std::string("llama"));
    put("pre", std::string("default"));
    add_tokens(std::move(scores));
    put("add_space_prefix", spaces.prefixes());
  }

  void mark_bytes() {
    std::vector<bool> found(256);
    for (FileToken& token : tokens_.list) {
      const auto byte = token.kind == TokenKind::kNormal ? byte_of(token.text) : std::nullopt;
      if (byte) {
        token.kind = TokenKind::kByte;
        found[*byte] = true;
      }
    }
    const auto missing = std::ranges::find(found, false);
    require(
        missing == found.end(),
        ErrorCode::kUnsupported,
        "tokenizer.json: has no token <0x{:02X}>, a GGUF file needs one for each byte",
        missing - found.begin()
    );
  }

  void mark_unknown(std::string_view text) {
    const auto unknown = std::ranges::find(tokens_.list, text, &FileToken::text);
    if (!text.empty() && unknown != tokens_.list.end()) {
      unknown->kind = TokenKind::kUnknown;
    }
  }

  // Pieces that merges make are no added tokens for readers: they would print these as they are.
  std::vector<float> scores_of(const std::vector<PiecePair>& merges) {
    const auto is_piece = [](const FileToken& token) {
      return token.kind == TokenKind::kNormal || token.kind == TokenKind::kUserDefined;
    };
    std::vector<std::string_view> pieces;
    for (const FileToken& token : tokens_.list) {
      pieces.push_back(is_piece(token) ? std::string_view(token.text) : std::string_view());
    }
    std::vector<float> scores = piece_scores(merges, pieces);
    const auto lowest = -static_cast<float>(merges.size());
    for (std::size_t id = 0; id < scores.size(); ++id) {
      FileToken& token = tokens_.list[id];
      if (token.kind == TokenKind::kUserDefined && scores[id] > lowest &&
          token.text.find(kPieceSpace) != std::string::npos) {
        token.kind = TokenKind::kNormal;
      }
    }
    return scores;
  }

  void add_tokens(std::vector<float> scores = {}) {
    std::vector<std::string> texts;
    std::vector<std::int32_t> types;
    for (FileToken& token : tokens_.list) {
      texts.push_back(std::move(token.text));
      types.push_back(static_cast<std::int32_t>(token.kind));
    }
    put("tokens", std::move(texts));
    if (!scores.empty()) {
      put("scores", std::move(scores));
    }
    put("token_type", std::move(types));
  }

  const Json& tokenizer_;
  const Json& model_;
  FileTokens tokens_;
  VocabularyMetadata result_;
};

}  // namespace

VocabularyMetadata vocabulary_metadata(
    const text::ModelTexts& texts, const Json& config, const ModelMetadata& model
) {
  const text::TokenizerConfig tokenizer_config = text::load_tokenizer_config(texts);
  const auto engine = text::Tokenizer::load_if_present(texts, tokenizer_config);
  const auto tokenizer = read_tokenizer(texts, tokenizer_config);
  if (engine == nullptr || !tokenizer) {
    return {
        .pairs = {{"tokenizer.ggml.model", std::string("none")}},
        .notes = {"the model has no tokenizer, so the file has no vocabulary"},
    };
  }
  const Json& tokenizer_model = checked_model(*tokenizer);
  FileTokens tokens = file_tokens({*tokenizer, tokenizer_config, *engine}, model.vocab_size);
  VocabularyMetadata result =
      VocabularyMaker(*tokenizer, tokenizer_model, std::move(tokens)).make();
  add_special_tokens(
      {texts, config, tokenizer_config, *engine}, model.vocab_size, result.pairs, result.notes
  );
  for (KeyValue& pair : template_metadata(texts, tokenizer_config)) {
    result.pairs.push_back(std::move(pair));
  }
  return result;
}

}  // namespace saker::load::gguf
