// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/rerank_documents.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/embed/text_vectors.h"
#include "saker/engine/adapters.h"
#include "saker/engine/scoring.h"
#include "saker/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

// How the model judges.
struct Judge {
  models::RerankFormat format;
  models::ModelInfo info;
  bool classifies = false;
};

void require_one_class(int classes) {
  require(
      classes == 1,
      ErrorCode::kUnsupported,
      "the model's classifier has {} outputs, expected 1",
      classes
  );
}

Judge judge_of(const models::Model& model) {
  const models::EmbeddingHead* head = model.embedding_head();
  const int classes = head == nullptr ? 0 : head->class_count();
  if (model.info().judges_pairs) {
    require_one_class(classes);
    models::ModelInfo info = model.info();
    info.context_length = head->config().most_tokens(info.context_length);
    return {.format = {}, .info = std::move(info), .classifies = true};
  }
  const bool embeds =
      head != nullptr && head->config().is_declared && head->config().problem.empty();
  require(
      model.info().rerank != nullptr && (classes > 0 || !embeds),
      ErrorCode::kUnsupported,
      "the model is no reranker that can be run: {}",
      embeds ? "it makes vectors of texts"
             : fmt::format("models of type {} have no known prompt", model.info().model_type)
  );
  if (classes > 0) {
    require_one_class(classes);
  }
  return {*model.info().rerank, model.info(), classes == 1};
}

double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

class PairEncoder {
 public:
  PairEncoder(const text::Tokenizer& tokenizer, const Judge& judge, const RerankRequest& request)
      : tokenizer_(tokenizer),
        judge_(judge),
        truncate_(request.truncate),
        prefix_(plain(judge.format.prefix)),
        suffix_(plain(judge.format.suffix)),
        opening_(fmt::format(
            "<Instruct>: {}\n<Query>: {}\n<Document>: ",
            request.instruction.empty() ? std::string(judge.format.instruction)
                                        : request.instruction,
            request.query
        )) {}

  // `truncated` counts documents that were cut.
  std::vector<std::int32_t> encode(const std::string& document, std::int64_t& truncated) const {
    std::vector<std::int32_t> ids = prefix_;
    const std::vector<std::int32_t> body = plain(opening_ + document);
    const std::int64_t context = judge_.info.context_length;
    const auto all = static_cast<std::int64_t>(prefix_.size() + body.size() + suffix_.size());
    const bool cuts = truncate_ && context > 0 && all > context;
    const auto left = static_cast<std::int64_t>(body.size()) - (cuts ? all - context : 0);
    require(
        left > 0 && (cuts || context <= 0 || all <= context),
        ErrorCode::kInvalidArgument,
        "query and document have {} tokens with the prompt, expected at most {}: the model's "
        "context",
        all,
        context
    );
    truncated += cuts ? 1 : 0;
    ids.insert(ids.end(), body.begin(), body.begin() + static_cast<std::ptrdiff_t>(left));
    ids.insert(ids.end(), suffix_.begin(), suffix_.end());
    return ids;
  }

 private:
  std::vector<std::int32_t> plain(std::string_view text) const {
    return tokenizer_.encode(text, {.add_special_tokens = false});
  }

  const text::Tokenizer& tokenizer_;
  const Judge& judge_;
  bool truncate_;
  std::vector<std::int32_t> prefix_;
  std::vector<std::int32_t> suffix_;
  std::string opening_;  // The prompt's text before a document.
};

// A query and a document as the tokenizer joins them for a cross-encoder.
struct JoinedPair {
  std::vector<std::int32_t> ids;
  int second_type = 0;  // The first token of type 1; the number of tokens if there is none.
  bool is_cut = false;
};

// `most` > 0: a pair with more tokens throws kInvalidArgument, or loses the document's end if
// `truncate` is set. Throws kUnsupported for types other than 0 and then 1.
JoinedPair join_pair(
    const text::Tokenizer& tokenizer,
    std::string_view query,
    std::string_view document,
    std::int64_t most,
    bool truncate
) {
  text::TextPair pair = tokenizer.encode_pair(query, document);
  JoinedPair result;
  const auto all = static_cast<std::int64_t>(pair.ids.size());
  const std::int64_t above = most > 0 ? std::max<std::int64_t>(all - most, 0) : 0;
  require(
      above == 0 || (truncate && above < pair.second_end - pair.second_begin),
      ErrorCode::kInvalidArgument,
      "query and document have {} tokens, expected at most {}: the model's context",
      all,
      most
  );
  if (above > 0) {
    const auto cut = [&](std::vector<std::int32_t>& values) {
      const auto end = values.begin() + pair.second_end;
      values.erase(end - static_cast<std::ptrdiff_t>(above), end);
    };
    cut(pair.ids);
    cut(pair.types);
    result.is_cut = true;
  }
  const auto second = std::ranges::find_if(pair.types, [](int type) { return type != 0; });
  require(
      std::all_of(second, pair.types.end(), [](int type) { return type == 1; }),
      ErrorCode::kUnsupported,
      "the tokenizer gives a pair other types of tokens than 0 and then 1"
  );
  result.ids = std::move(pair.ids);
  result.second_type = static_cast<int>(second - pair.types.begin());
  return result;
}

// The model's input for each document.
struct Inputs {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<int> second_types = {};  // See embed::PoolOptions.
};

// Calls `encode` for each document; errors name it.
template <typename Encode>
Inputs inputs_of(
    const Judge& judge, const RerankRequest& request, RerankResult& result, const Encode& encode
) {
  Inputs inputs;
  inputs.ids.reserve(request.documents.size());
  for (const std::string& document : request.documents) {
    try {
      inputs.ids.push_back(encode(document, inputs));
      embed::check_tokens(judge.info, inputs.ids.back());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("document {}: {}", inputs.ids.size(), error.what()));
    }
    result.tokens += static_cast<std::int64_t>(inputs.ids.back().size());
  }
  return inputs;
}

Inputs prompted_inputs(
    const text::Tokenizer& tokenizer,
    const Judge& judge,
    const RerankRequest& request,
    RerankResult& result
) {
  const PairEncoder encoder(tokenizer, judge, request);
  return inputs_of(judge, request, result, [&](const std::string& document, Inputs&) {
    return encoder.encode(document, result.truncated);
  });
}

Inputs joined_inputs(
    const text::Tokenizer& tokenizer,
    const Judge& judge,
    const RerankRequest& request,
    RerankResult& result
) {
  require(
      request.instruction.empty(),
      ErrorCode::kInvalidArgument,
      "instruction: models of type {} read query and document alone, expected none",
      judge.info.model_type
  );
  return inputs_of(judge, request, result, [&](const std::string& document, Inputs& inputs) {
    const std::int64_t most = judge.info.context_length;
    JoinedPair pair = join_pair(tokenizer, request.query, document, most, request.truncate);
    result.truncated += pair.is_cut ? 1 : 0;
    inputs.second_types.push_back(pair.second_type);
    return std::move(pair.ids);
  });
}

std::int32_t answer_token(const text::Tokenizer& tokenizer, std::string_view piece) {
  const auto id = tokenizer.token_id(piece);
  require(
      id.has_value(),
      ErrorCode::kUnsupported,
      "the model is no reranker that can be run: its tokenizer has no token {}",
      quote(piece)
  );
  return *id;
}

std::vector<double> classify(
    Runner& runner, int prefill_step, const RerankRequest& request, const Inputs& inputs
) {
  const std::vector<embed::TokenSpan> sequences(inputs.ids.begin(), inputs.ids.end());
  runner.read_adapters({&request.view, 1});
  const auto rows = runner.call([&](const models::Model& model) {
    const nn::AdapterUse adapter = runner.adapters().use(request.view, model);
    const embed::PoolOptions options{
        .prefill_step = prefill_step,
        .adapter = adapter,
        .second_types = inputs.second_types,
        .before_pass = runner.before_pass(request.stop),
    };
    return embed::class_scores(model, sequences, options);
  });
  std::vector<double> scores;
  scores.reserve(rows.size());
  for (const std::vector<float>& row : rows) {
    scores.push_back(logistic(static_cast<double>(row.front())));
  }
  return scores;
}

// The log-probabilities of both answers come from one row, because their prompts are equal.
std::vector<double> ask(
    Runner& runner,
    const Prompts& texts,
    int prefill_step,
    const RerankRequest& request,
    const Judge& judge,
    const std::vector<std::vector<std::int32_t>>& prompts
) {
  const text::Tokenizer& tokenizer = texts.tokenizer_for_text();
  const std::int32_t answers[] = {
      answer_token(tokenizer, judge.format.yes), answer_token(tokenizer, judge.format.no)
  };
  std::vector<ScoreRequest> requests;
  requests.reserve(2 * prompts.size());
  for (const std::vector<std::int32_t>& prompt : prompts) {
    for (const std::int32_t answer : answers) {
      requests.push_back(
          {.tokens = std::vector{answer},
           .prompt_tokens = prompt,
           .views = {request.view},
           .stop = request.stop}
      );
    }
  }
  const std::vector<ScoreOutcome> outcomes = score_requests(runner, texts, prefill_step, requests);
  const auto logprob = [&](std::size_t at) {
    if (const Error* error = std::get_if<Error>(&outcomes[at])) {
      throw Error(*error);
    }
    return std::get<ScoreResult>(outcomes[at]).views.front().sum;
  };
  std::vector<double> scores;
  scores.reserve(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    scores.push_back(logistic(logprob(2 * i) - logprob(2 * i + 1)));
  }
  return scores;
}

}  // namespace

RerankResult rerank_documents(
    Runner& runner, const Prompts& prompts, int prefill_step, const RerankRequest& request
) {
  const Judge judge = runner.call(judge_of);
  const text::Tokenizer& tokenizer = prompts.tokenizer_for_text();
  RerankResult result;
  const Inputs inputs = judge.info.judges_pairs
                            ? joined_inputs(tokenizer, judge, request, result)
                            : prompted_inputs(tokenizer, judge, request, result);
  if (inputs.ids.empty()) {
    return result;
  }
  result.scores = judge.classifies ? classify(runner, prefill_step, request, inputs)
                                   : ask(runner, prompts, prefill_step, request, judge, inputs.ids);
  return result;
}

std::vector<std::size_t> best_first(const std::vector<double>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return scores[a] > scores[b];
  });
  return order;
}

}  // namespace saker::engine
