// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/native/answer.h"

#include "saker/base/json/json_numbers.h"
#include "saker/server/api/openai/errors.h"
#include "saker/server/turns/collected_answer.h"
#include "saker/server/turns/token_json.h"
#include "saker/server/turns/wire.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace saker::server::native {
namespace {

constexpr double kMilliseconds = 1000.0;

// Counts and rates of one kind of pass, by names that begin with `kind`.
void add_rates(Json& timings, const std::string& kind, int count, double seconds) {
  const double each = count > 0 ? seconds / count : 0.0;
  timings[kind + "_n"] = count;
  timings[kind + "_ms"] = seconds * kMilliseconds;
  timings[kind + "_per_token_ms"] = each * kMilliseconds;
  timings[kind + "_per_second"] = seconds > 0 ? count / seconds : 0.0;
}

Json timings_of(const engine::GenerateStats& stats, int generated) {
  const int run = stats.prompt_tokens - stats.cached_tokens;
  Json timings = {{"cache_n", stats.cached_tokens}};
  add_rates(timings, "prompt", run, stats.prompt_tps > 0 ? run / stats.prompt_tps : 0.0);
  add_rates(
      timings,
      "predicted",
      generated,
      stats.generation_tps > 0 ? generated / stats.generation_tps : 0.0
  );
  return timings;
}

const char* stop_type(const engine::GenerateResult& result) {
  if (result.stop_string) {
    return "word";
  }
  return is_whole(result) ? "eos" : "limit";
}

// The members at paths such as "timings/prompt_n", by these names; those that are not there are left out.
Json members_at(const std::vector<std::string>& paths, const Json& json) {
  Json found = Json::object();
  for (const std::string& path : paths) {
    const Json* place = &json;
    for (std::size_t begin = 0; place != nullptr && begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto member =
          place->is_object() ? place->find(path.substr(begin, end - begin)) : place->end();
      place = place->is_object() && member != place->end() ? &*member : nullptr;
      begin = end + 1;
    }
    if (place != nullptr) {
      found[path] = *place;
    }
  }
  return found;
}

std::string shown(const engine::Prompt& prompt, const text::Tokenizer* tokenizer) {
  if (prompt.tokens && tokenizer != nullptr) {
    return tokenizer->decode(*prompt.tokens);
  }
  return prompt.text.value_or("");
}

class NativeEncoder : public Encoder {
 public:
  NativeEncoder(const NativeRequest& request, const text::Tokenizer* tokenizer)
      : model_(request.model),
        streams_(request.streams),
        has_list_(request.has_list),
        has_no_answer_(request.has_no_answer),
        returns_tokens_(request.returns_tokens),
        has_top_(request.top.has_value()),
        fields_(request.response_fields),
        tokenizer_(tokenizer),
        choices_(request.prompts.size()) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      choices_[i].prompt = shown(request.prompts[i], tokenizer);
    }
  }

  void add(engine::Event event, std::string& out) override {
    Choice& choice = choices_.at(static_cast<std::size_t>(event.choice));
    if (auto* token = std::get_if<engine::TokenEvent>(&event.what); token && !has_no_answer_) {
      choice.tokens.push_back(std::move(*token));
    } else if (const auto* piece = std::get_if<text::ContentPiece>(&event.what)) {
      if (!has_no_answer_) {
        add_text(choice, event.choice, piece->text, out);
      }
    } else if (const auto* end = std::get_if<engine::End>(&event.what)) {
      choice.result = end->result;
      if (streams_) {
        out += sse(last_of(choice, event.choice, ""));
      }
    }
  }

  std::string end() override {
    if (streams_) {
      return {};
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const std::string text = std::exchange(choices_[i].text, {});
      list.push_back(last_of(choices_[i], static_cast<int>(i), text));
    }
    return write_json(has_list_ ? list : list.front());
  }

  std::string failure(const ApiError& error) override { return sse(openai::error_json(error)); }

 private:
  struct Choice {
    std::string prompt;
    std::string text;
    std::vector<engine::TokenEvent> tokens;  // Since the last piece of a stream.
    std::shared_ptr<const engine::GenerateResult> result;
  };

  void add_text(Choice& choice, int index, const std::string& text, std::string& out) {
    if (!streams_) {
      choice.text += text;
      return;
    }
    Json piece = {{"index", index}, {"content", text}, {"tokens", ids(choice)}, {"stop", false}};
    add_probabilities(piece, choice);
    choice.tokens.clear();
    out += sse(piece);
  }

  Json ids(const Choice& choice) const {
    Json list = Json::array();
    for (const engine::TokenEvent& token : choice.tokens) {
      if (returns_tokens_) {
        list.push_back(token.id);
      }
    }
    return list;
  }

  void add_probabilities(Json& json, const Choice& choice) const {
    if (has_top_) {
      Json& list = json["completion_probabilities"] = token_logprobs(choice.tokens, tokenizer_);
      for (std::size_t i = 0; i < choice.tokens.size(); ++i) {
        list[i]["id"] = choice.tokens[i].id;
      }
    }
  }

  // The whole answer, or the last event of a stream.
  Json last_of(Choice& choice, int index, const std::string& text) const {
    const engine::GenerateResult& result = *choice.result;
    const int generated = has_no_answer_ ? 0 : result.stats.generation_tokens;
    Json json = {
        {"index", index},
        {"content", text},
        {"tokens", ids(choice)},
        {"stop", true},
        {"model", model_},
        {"tokens_predicted", generated},
        {"tokens_evaluated", result.stats.prompt_tokens},
        {"tokens_cached", result.stats.prompt_tokens + generated},
        {"prompt", choice.prompt},
        {"truncated", false},
        {"stop_type", has_no_answer_ ? "limit" : stop_type(result)},
        {"stopping_word", result.stop_string.value_or("")},
        {"timings", timings_of(result.stats, generated)},
    };
    add_probabilities(json, choice);
    return fields_.empty() ? json : members_at(fields_, json);
  }

  std::string model_;
  bool streams_;
  bool has_list_;
  bool has_no_answer_;
  bool returns_tokens_;
  bool has_top_;
  std::vector<std::string> fields_;
  const text::Tokenizer* tokenizer_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<Encoder> answer_encoder(
    const NativeRequest& request, const text::Tokenizer* tokenizer
) {
  return std::make_unique<NativeEncoder>(request, tokenizer);
}

}  // namespace saker::server::native
