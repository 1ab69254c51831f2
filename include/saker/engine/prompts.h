// SPDX-License-Identifier: Apache-2.0
#pragma once

// The text side of a model. It encodes requests as token ids and reads from the model's files what
// ends or shapes an answer. Immutable; all members may be called from any thread.

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/text/chat_template.h"
#include "saker/text/model_texts.h"
#include "saker/text/output/output_format.h"
#include "saker/text/tokenizer.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::engine {

// The tokens to score and the first scored one.
struct ScorePrompt {
  std::vector<std::int32_t> tokens;  // Prompt first.
  int first_scored = 1;              // Index in `tokens`.
  bool boundary_merged = false;
  bool first_token_unscored = false;  // The prompt is empty, so nothing is before it.
};

// How texts for vectors are encoded.
struct EmbeddingTexts {
  std::map<std::string, std::string, std::less<>> prompts;  // By name; they begin a text.
  std::string default_prompt;                               // A name in `prompts`; empty: none.
  bool add_bos_token = false;                               // As in Prompts::Parts.
  bool add_eos_token = false;             // tokenizer_config.json: an EOS follows each text.
  std::optional<std::int32_t> end_token;  // The first `eos_token_id` of config.json.
};

// Texts, templates and special tokens of one model.
class Prompts {
 public:
  // All that is read from files.
  struct Parts {
    std::shared_ptr<const text::Tokenizer> tokenizer;  // None: requests come as token ids.
    std::optional<Error> text_error;  // Why there is no tokenizer; thrown only when text is needed.
    std::optional<text::ChatTemplate> chat_template;
    Json response_template;  // In tokenizer_config.json.
    std::vector<std::int32_t> eos_tokens;
    // By their names in the tokenizer's configuration: "bos_token" and so on.
    std::map<std::string, std::int32_t, std::less<>> special_tokens;
    bool add_bos_token = false;  // Before text prompts that do not start with it.
    sample::SamplingOptions recommended_sampling;
    EmbeddingTexts embedding;
    std::vector<std::string> warnings;  // One line each: defects in files, which were left out.
  };

  // Texts without tokenizer.json have no tokenizer; broken ones have a `text_error`. Throws what
  // load_eos_tokens throws.
  static Parts read(const text::ModelTexts& texts);

  // Takes parts that `read` returns, or parts made by hand.
  explicit Prompts(Parts parts);

  // Throws kInvalidArgument unless exactly one kind of prompt is given, kUnsupported for messages
  // without a template and for text without a tokenizer. `context` > 0: a text with more tokens
  // than that throws kInvalidArgument, and a long one is not read to its end. 0: no limit.
  std::vector<std::int32_t> encode(const Request& request, std::int64_t context = 0) const;
  // As above, for a request to score.
  ScorePrompt encode(const ScoreRequest& request, std::int64_t context = 0) const;

  const std::shared_ptr<const text::Tokenizer>& tokenizer() const { return parts_.tokenizer; }

  // Throws what is wrong with the model's texts; kUnsupported if there is no tokenizer.
  const text::Tokenizer& tokenizer_for_text() const;

  // Null if the model has none.
  const text::ChatTemplate* chat_template() const;

  // How answers to messages are written; found when first asked for. Thread-safe.
  const text::OutputFormat& output_format() const;

  // The token of this name in the tokenizer's configuration. Any of `eos_tokens` ends an answer.
  std::optional<std::int32_t> special_token(std::string_view name) const;

  const std::vector<std::int32_t>& eos_tokens() const { return parts_.eos_tokens; }

  // Tokens that xtc never removes: EOS and, with a tokenizer, the tokens of a line break.
  std::vector<std::int32_t> xtc_exempt() const;

  // The tokens at which repetitions end for dry; none without that option or a tokenizer. Remembers
  // its last result, because the search takes a while. Thread-safe.
  std::vector<std::int32_t> dry_breakers(const Request& request) const;
  // The first tokens of Drafting::prediction, `most` or a few more. Throws kInvalidArgument for
  // text that is not UTF-8, and without a tokenizer.
  std::vector<std::int32_t> prediction(const Request& request, std::size_t most) const;

  // Sampling options of generation_config.json.
  const sample::SamplingOptions& recommended_sampling() const {
    return parts_.recommended_sampling;
  }

  const EmbeddingTexts& embedding_texts() const { return parts_.embedding; }

  const std::vector<std::string>& warnings() const { return parts_.warnings; }

 private:
  std::vector<std::int32_t> encode_text(const std::string& text, std::int64_t context) const;

  Parts parts_;
  mutable std::once_flag format_once_;
  mutable text::OutputFormat format_;
  mutable std::mutex breakers_mutex_;
  mutable std::vector<std::string> breaker_texts_;
  mutable std::vector<std::int32_t> breakers_;  // The tokens that contain breaker_texts_.
};

// The content of a generation_config.json.
struct RecommendedSampling {
  sample::SamplingOptions options;
  std::vector<std::string> warnings;  // Members of the file that make no sense and are not used.
};

// Sampling options of a generation_config.json, over the defaults. REQUIRES: an object.
RecommendedSampling sampling_from(const Json& generation_config);

}  // namespace saker::engine
