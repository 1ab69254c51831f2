// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests for vectors of texts and for the order of documents, and their results. Plain values; no
// MLX.

#include "saker/engine/views.h"
#include "saker/models/pooling.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace saker::engine {

// A text, or its token ids. A text gets the prompt, the special tokens of the tokenizer and the end
// token; ids are used as they are.
using EmbedInput = std::variant<std::string, std::vector<std::int32_t>>;

// Texts, and what their vectors shall be like. Without options: as the model's files say.
struct EmbedRequest {
  std::vector<EmbedInput> inputs = {};
  std::optional<models::Pooling> pooling = {};
  std::optional<bool> normalize = {};  // Unit length.
  // > 0: keeps this many first elements, before unit length is restored.
  int dimensions = 0;
  // A prompt of the model's config_sentence_transformers.json, such as "query", which begins each
  // text. Empty: its default prompt, if it has one.
  std::string prompt_name = {};
  std::optional<std::string> prompt = {};  // The prompt itself, instead of a name.
  // Cuts texts that are longer than the model's context, instead of refusing them. Tokens that end
  // each text stay.
  bool truncate = false;
  View view = {};  // The model as an adapter changes it.
  // Asked to stop, the call ends with kCancelled after two passes at most.
  std::stop_token stop = {};
};

// Vectors in the order of the inputs.
struct EmbedResult {
  std::vector<std::vector<float>> embeddings;
  std::int64_t tokens = 0;     // The sum over the inputs, as they ran.
  std::int64_t truncated = 0;  // Inputs that were cut.
};

// Documents to judge by a query.
struct RerankRequest {
  std::string query = {};
  std::vector<std::string> documents = {};
  std::string instruction = {};  // The task, in a sentence; empty: the model's own.
  bool truncate = false;         // Cuts documents that are too long, instead of refusing them.
  View view = {};
  std::stop_token stop = {};  // As EmbedRequest's.
};

// Scores in the order of the documents.
struct RerankResult {
  std::vector<double> scores;  // In [0, 1]: the probability that the document answers the query.
  std::int64_t tokens = 0;     // The sum over the prompts, as they ran.
  std::int64_t truncated = 0;  // Documents that were cut.
};

// The places of the scores, best first; ties: the lower place first.
std::vector<std::size_t> best_first(const std::vector<double>& scores);

}  // namespace saker::engine
