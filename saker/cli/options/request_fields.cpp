// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/request_fields.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/field_kind.h"
#include "saker/sample/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::cli {
namespace {

using engine::GenerateRequest;
using sample::SamplingOptions;
using Kind = RequestField::Kind;

int as_int(const Json& value, std::string_view name) {
  bool fits = false;
  if (value.is_number_unsigned()) {
    fits = value.get<std::uint64_t>() <= std::numeric_limits<int>::max();
  } else {
    const auto number = value.get<std::int64_t>();
    fits = number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max();
  }
  require(fits, ErrorCode::kInvalidArgument, "{}: {} is out of range", name, value.dump());
  return static_cast<int>(value.get<std::int64_t>());
}

template <double SamplingOptions::* member>
void set_number(GenerateRequest& request, const Json& value) {
  request.sampling.*member = value.get<double>();
}

// The name of the option that `set` sets.
std::string_view name_of(void (*set)(GenerateRequest&, const Json&)) {
  return std::ranges::find(request_fields(), set, &RequestField::set)->name;
}

template <int SamplingOptions::* member>
void set_integer(GenerateRequest& request, const Json& value) {
  request.sampling.*member = as_int(value, name_of(&set_integer<member>));
}

void set_logit_bias(GenerateRequest& request, const Json& value) {
  request.sampling.logit_bias.clear();
  for (const auto& [key, bias] : value.items()) {
    std::int32_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    require(
        error == std::errc() && end == key.data() + key.size() && bias.is_number(),
        ErrorCode::kInvalidArgument,
        "logit_bias: got {}: {}, expected token ids with numbers, as in {{\"42\": -1.5}}",
        key,
        bias.dump()
    );
    request.sampling.logit_bias[id] = bias.get<double>();
  }
}

void set_seed(GenerateRequest& request, const Json& value) {
  require(
      value.is_number_unsigned() || value.get<std::int64_t>() >= 0,
      ErrorCode::kInvalidArgument,
      "seed: got {}, expected an integer of at least 0",
      value.dump()
  );
  request.sampling.seed = value.get<std::uint64_t>();
}

std::vector<std::string> as_texts(const Json& value) {
  return value.is_string() ? std::vector<std::string>{value.get<std::string>()}
                           : value.get<std::vector<std::string>>();
}

void set_stop(GenerateRequest& request, const Json& value) {
  request.stop = as_texts(value);
}

void set_dry_sequence_breakers(GenerateRequest& request, const Json& value) {
  request.dry_sequence_breakers = as_texts(value);
}

void set_ignore_eos(GenerateRequest& request, const Json& value) {
  request.ignore_eos = value.get<bool>();
}

void set_adapter(GenerateRequest& request, const Json& value) {
  request.adapter = value.get<std::string>();
}

void set_adapter_scale(GenerateRequest& request, const Json& value) {
  request.adapter_scale = value.get<double>();
}

void set_speculate(GenerateRequest& request, const Json& value) {
  request.speculate = engine::parse_speculate(value.get<std::string>());
}

void set_acceptance(GenerateRequest& request, const Json& value) {
  request.acceptance = engine::parse_acceptance(value.get<std::string>());
}

void set_max_tokens(GenerateRequest& request, const Json& value) {
  request.max_tokens = as_int(value, "max_tokens");
  require(
      request.max_tokens >= 1 || request.max_tokens == engine::kNoTokenLimit,
      ErrorCode::kInvalidArgument,
      "max_tokens: got {}, expected 1 or more, or -1 for no limit",
      request.max_tokens
  );
}

// 0 means that none are asked for.
void set_logprobs(GenerateRequest& request, const Json& value) {
  request.logprobs = as_int(value, "logprobs");
  require(
      request.logprobs >= 0,
      ErrorCode::kInvalidArgument,
      "logprobs: got {}, expected 0 or more",
      request.logprobs
  );
}

void set_think(GenerateRequest& request, const Json& value) {
  request.think = value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
}

// "auto" is the default.
constexpr int kMaxDraftDepth = 64;

void set_draft_depth(GenerateRequest& request, const Json& value) {
  request.draft_depth = value.is_string() ? engine::kAutoDraftDepth : as_int(value, "draft_depth");
  require(
      value.is_string() || (request.draft_depth >= 0 && request.draft_depth <= kMaxDraftDepth),
      ErrorCode::kInvalidArgument,
      "draft_depth: got {}, expected auto or 0 to {}",
      value.dump(),
      kMaxDraftDepth
  );
}

constexpr RequestField kFields[] = {
    {"max_tokens",
     Kind::kInteger,
     "Maximum number of tokens to generate; -1: until the answer or the context ends [256; run: "
     "-1]",
     set_max_tokens},
    {"temperature",
     Kind::kNumber,
     "Temperature; 0: the most probable token [0]",
     set_number<&SamplingOptions::temperature>,
     {"temp"}},
    {"top_p",
     Kind::kNumber,
     "Keep the smallest set of tokens with this mass; 0 or 1: off [1]",
     set_number<&SamplingOptions::top_p>},
    {"top_k",
     Kind::kInteger,
     "Keep this many best tokens; 0: off [0]",
     set_integer<&SamplingOptions::top_k>},
    {"min_p",
     Kind::kNumber,
     "Remove tokens below this fraction of the best one's probability [0]",
     set_number<&SamplingOptions::min_p>},
    {"min_tokens_to_keep",
     Kind::kInteger,
     "Minimum number of tokens that min-p keeps [1]",
     set_integer<&SamplingOptions::min_tokens_to_keep>},
    {"xtc_probability",
     Kind::kNumber,
     "Chance to exclude top choices at a position [0]",
     set_number<&SamplingOptions::xtc_probability>},
    {"xtc_threshold",
     Kind::kNumber,
     "Minimum probability of a top choice [0.1]",
     set_number<&SamplingOptions::xtc_threshold>},
    {"typical_p",
     Kind::kNumber,
     "Keep the tokens of about the expected surprise, with this mass; 0 or 1: off [1]",
     set_number<&SamplingOptions::typical_p>},
    {"top_n_sigma",
     Kind::kNumber,
     "Keep logits within this many standard deviations of the best; 0: off [0]",
     set_number<&SamplingOptions::top_n_sigma>},
    {"dynatemp_range",
     Kind::kNumber,
     "Vary the temperature with the entropy, up to this far from --temperature; 0: off [0]",
     set_number<&SamplingOptions::dynatemp_range>},
    {"dynatemp_exponent",
     Kind::kNumber,
     "Exponent of the entropy for --dynatemp-range [1]",
     set_number<&SamplingOptions::dynatemp_exponent>},
    {"seed", Kind::kInteger, "Seed of the sampling noise; without it runs differ", set_seed},
    {"repetition_penalty",
     Kind::kNumber,
     "Penalty on recent tokens; 1: off [1]",
     set_number<&SamplingOptions::repetition_penalty>},
    {"repetition_context_size",
     Kind::kInteger,
     "Number of recent tokens that count; 0: all [20]",
     set_integer<&SamplingOptions::repetition_context_size>},
    {"presence_penalty",
     Kind::kNumber,
     "Subtracted once from recent tokens' logits [0]",
     set_number<&SamplingOptions::presence_penalty>},
    {"presence_context_size",
     Kind::kInteger,
     "Number of recent tokens that count; 0: all [20]",
     set_integer<&SamplingOptions::presence_context_size>},
    {"frequency_penalty",
     Kind::kNumber,
     "Subtracted per occurrence in recent tokens [0]",
     set_number<&SamplingOptions::frequency_penalty>},
    {"frequency_context_size",
     Kind::kInteger,
     "Number of recent tokens that count; 0: all [20]",
     set_integer<&SamplingOptions::frequency_context_size>},
    {"dry_multiplier",
     Kind::kNumber,
     "Penalty on tokens that would extend a repetition (DRY); 0: off [0]",
     set_number<&SamplingOptions::dry_multiplier>},
    {"dry_base",
     Kind::kNumber,
     "Growth of the DRY penalty with each repeated token [1.75]",
     set_number<&SamplingOptions::dry_base>},
    {"dry_allowed_length",
     Kind::kInteger,
     "Repeated tokens that DRY allows without a penalty [2]",
     set_integer<&SamplingOptions::dry_allowed_length>},
    {"dry_context_size",
     Kind::kInteger,
     "Number of recent tokens that count; 0: all [0]",
     set_integer<&SamplingOptions::dry_context_size>},
    {"dry_sequence_breakers",
     Kind::kTexts,
     "Text that ends a repetition; may be repeated [line break, colon, quotation mark, *]",
     set_dry_sequence_breakers,
     {"dry_sequence_breaker", "dry_breakers"}},
    {"min_tokens",
     Kind::kInteger,
     "Minimum number of tokens before the answer may end [0]",
     set_integer<&SamplingOptions::min_tokens>},
    {"logit_bias", Kind::kObject, "Numbers added to logits: '{\"ID\": BIAS, ...}'", set_logit_bias},
    {"stop", Kind::kTexts, "Text that ends the answer and is not shown; may be repeated", set_stop},
    {"ignore_eos", Kind::kFlag, "Continue after end-of-sequence tokens", set_ignore_eos},
    {"logprobs",
     Kind::kInteger,
     "Report the log-probability of each token and of this many alternatives",
     set_logprobs},
    {"speculate",
     Kind::kText,
     "Source of draft tokens; the answer stays the same "
     "[the draft that is loaded, else the model's MTP head]",
     set_speculate},
    {"acceptance",
     Kind::kText,
     "Drafts to take: coupled, those that sampling without drafts chooses; rejection, more, for "
     "another answer of the same distribution [coupled]",
     set_acceptance},
    {"draft_depth",
     Kind::kIntegerOrAuto,
     "Draft tokens of one pass at most, up to 64; auto: as many as pay [auto]",
     set_draft_depth},
    {"max_kv_size",
     Kind::kInteger,
     "Maximum number of tokens in the cache; the first 4 always stay; 0: no limit [0]",
     [](GenerateRequest& r, const Json& v) { r.max_kv_size = as_int(v, "max_kv_size"); }},
    {"kv_bits",
     Kind::kInteger,
     "Bits of each element that the cache keeps of a token: 4, 8, 16, or 32 for float32 [16]",
     [](GenerateRequest& r, const Json& v) { r.kv_bits = as_int(v, "kv_bits"); }},
    {"adapter", Kind::kText, "Folder of an adapter (mlx-lm or PEFT)", set_adapter},
    {"adapter_scale",
     Kind::kNumber,
     "Strength of the adapter; 0: the base model [1]",
     set_adapter_scale},
    {"think",
     Kind::kSwitch,
     "Let a chat model think before it answers; auto: as its template says [auto]",
     set_think,
     {"enable_thinking"}},
    {"template_kwargs",
     Kind::kObject,
     "More variables for the chat template, as a JSON object",
     [](GenerateRequest& r, const Json& v) { r.template_kwargs = v; },
     {"kwargs", "chat_template_kwargs"}},
};

// Throws if the record has another value under a name of the field that precedes `key`.
void check_names_agree(
    const Json& record, const RequestField& field, std::string_view key, const Json& value
) {
  for (const std::string_view name : {field.name, field.aliases[0], field.aliases[1]}) {
    if (name == key) {
      return;
    }
    const auto other = record.find(std::string(name));
    if (other != record.end() && !other->is_null()) {
      require(
          in_kind(*other, field.kind) == in_kind(value, field.kind),
          ErrorCode::kInvalidArgument,
          "{} and {} are the same option: got {} and {}",
          name,
          key,
          other->dump(),
          value.dump()
      );
    }
  }
}

std::vector<std::int32_t> json_tokens(const Json& value) {
  require(value.is_array(), ErrorCode::kInvalidArgument, "tokens: expected a list of token ids");
  std::vector<std::int32_t> tokens;
  tokens.reserve(value.size());
  for (const auto& item : value) {
    const Json id = as_whole(item);
    require(
        id.is_number_integer(),
        ErrorCode::kInvalidArgument,
        "tokens: got {}, expected token ids",
        item.dump()
    );
    tokens.push_back(as_int(id, "a token id"));
  }
  return tokens;
}

constexpr std::string_view kPromptKeys[] = {"prompt", "tokens", "messages", "tools"};

// Prompts have types of their own; true if `key` is one. Null counts as absent.
bool apply_prompt(std::string_view key, const Json& value, GenerateRequest& request) {
  if (std::ranges::find(kPromptKeys, key) == std::end(kPromptKeys)) {
    return false;
  }
  if (value.is_null()) {
    return true;
  }
  if (key == "prompt") {
    require(
        value.is_string(),
        ErrorCode::kInvalidArgument,
        "prompt: got {}, expected a text",
        value.type_name()
    );
    request.prompt = value.get<std::string>();
  } else if (key == "tokens") {
    request.tokens = json_tokens(value);
  } else if (key == "messages") {
    request.messages = value;
  } else {
    request.tools = value;
  }
  return true;
}

}  // namespace

std::span<const std::string_view> RequestField::other_names() const {
  const auto end = std::ranges::find(aliases, std::string_view());
  return {aliases.begin(), end};
}

std::span<const RequestField> request_fields() {
  return kFields;
}

const RequestField* find_field(std::string_view name) {
  for (const RequestField& field : kFields) {
    const auto others = field.other_names();
    if (name == field.name || std::ranges::find(others, name) != others.end()) {
      return &field;
    }
  }
  return nullptr;
}

void apply_record(const Json& record, GenerateRequest& request) {
  require(
      record.is_object(),
      ErrorCode::kInvalidArgument,
      "expected a JSON object, got {}",
      record.type_name()
  );
  for (const auto& [key, value] : record.items()) {
    if (key == "id" || apply_prompt(key, value, request)) {
      continue;
    }
    const RequestField* field = find_field(key);
    require(field != nullptr, ErrorCode::kInvalidArgument, "unknown option {:?}", key);
    if (value.is_null()) {
      continue;
    }
    const Json typed = in_kind(value, field->kind);
    require(
        has_kind(typed, field->kind),
        ErrorCode::kInvalidArgument,
        "{}: got {}, expected {}",
        key,
        describe_value(value, field->kind),
        kind_name(field->kind)
    );
    check_names_agree(record, *field, key, value);
    field->set(request, typed);
  }
}

std::vector<std::int32_t> parse_token_list(std::string_view flag, std::string_view text) {
  std::vector<std::int32_t> tokens;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    const bool ends_well = next == end || (*next == ',' && next + 1 != end);
    require(
        error == std::errc() && ends_well,
        ErrorCode::kInvalidArgument,
        "{}: got {} at character {}, expected ids with commas between, as in 1,2,3",
        flag,
        quote({at, static_cast<std::size_t>(end - at)}, 12),
        at - text.data() + 1
    );
    tokens.push_back(id);
    at = next == end ? end : next + 1;
  }
  return tokens;
}

void check_request(const engine::GenerateRequest& request) {
  constexpr int kAnyVocabulary = std::numeric_limits<int>::max();
  constexpr std::array kBits{4, 8, 16, 32};
  sample::check_options(request.sampling, kAnyVocabulary);
  require(
      std::ranges::find(kBits, request.kv_bits) != kBits.end(),
      ErrorCode::kInvalidArgument,
      "kv_bits: got {}, expected 32, 16, 8 or 4",
      request.kv_bits
  );
  require(
      request.max_kv_size >= 0,
      ErrorCode::kInvalidArgument,
      "max_kv_size: got {}, expected 0 or more",
      request.max_kv_size
  );
}

}  // namespace saker::cli
