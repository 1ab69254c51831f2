// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/sampling_fields.h"

#include "saker/base/json/json_numbers.h"
#include "saker/base/utf8.h"
#include "saker/server/turns/wire.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <string>
#include <utility>

namespace saker::server {
namespace {

void set(Fields& fields, std::string_view name, double low, double high, double& target) {
  target = fields.number(name, low, high).value_or(target);
}

void set(Fields& fields, std::string_view name, int low, int& target) {
  if (const auto value = fields.integer(name, low, kMaxInt)) {
    target = static_cast<int>(*value);
  }
}

// A filter by llama-server's name, and how it is switched off.
struct Sampler {
  std::string_view name;
  void (*switch_off)(sample::SamplingOptions& sampling);
};

constexpr std::array kSamplers = {
    Sampler{
        "penalties",
        [](auto& sampling) {
          sampling.repetition_penalty = 1.0;
          sampling.presence_penalty = 0.0;
          sampling.frequency_penalty = 0.0;
        }
    },
    Sampler{"dry", [](auto& sampling) { sampling.dry_multiplier = 0.0; }},
    Sampler{"top_k", [](auto& sampling) { sampling.top_k = 0; }},
    Sampler{"typ_p", [](auto& sampling) { sampling.typical_p = 1.0; }},
    Sampler{"top_p", [](auto& sampling) { sampling.top_p = 1.0; }},
    Sampler{"min_p", [](auto& sampling) { sampling.min_p = 0.0; }},
    Sampler{"xtc", [](auto& sampling) { sampling.xtc_probability = 0.0; }},
    Sampler{"temperature", [](auto& sampling) { sampling.temperature = 1.0; }},
    // Weighs ends of an answer against beginnings of words; it has no counterpart here.
    Sampler{"infill", [](auto& /*sampling*/) {}},
};

// A list of samplers switches off those that it leaves out. Their order is the engine's.
void read_samplers(Fields& fields, sample::SamplingOptions& sampling) {
  if (!fields.has("samplers")) {
    return;
  }
  const std::vector<std::string> names = fields.texts("samplers");
  for (const std::string& name : names) {
    if (std::ranges::find(kSamplers, name, &Sampler::name) == kSamplers.end()) {
      throw bad_field(
          fields.path_of("samplers"),
          "{} is none of {}",
          quote(name),
          fmt::join(kSamplers | std::views::transform(&Sampler::name), ", ")
      );
    }
  }
  for (const Sampler& sampler : kSamplers) {
    if (std::ranges::find(names, sampler.name) == names.end()) {
      sampler.switch_off(sampling);
    }
  }
}

void read_logit_bias(Fields& fields, const ServedModel& model, sample::SamplingOptions& sampling) {
  const Json* given = fields.object("logit_bias");
  if (given == nullptr) {
    return;
  }
  const std::string path = fields.path_of("logit_bias");
  for (const auto& [key, bias] : given->items()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 ||
        id >= model.model().facts().vocab_size) {
      throw bad_field(
          path,
          "expected token ids below {}, got {}",
          model.model().facts().vocab_size,
          describe_json(Json(key))
      );
    }
    constexpr double kMost = 100.0;
    if (!bias.is_number() || !(bias.get<double>() >= -kMost && bias.get<double>() <= kMost)) {
      throw bad_field(path, "expected numbers from -100 to 100, got {}", describe_json(bias));
    }
    sampling.logit_bias[id] = bias.get<double>();
  }
}

void constrain(
    engine::ConstraintKind kind, std::string text, const std::string& name, engine::Request& request
) {
  if (request.output.constraint) {
    throw bad_field(name, "an answer can have one constraint, and another field sets one");
  }
  request.output.constraint = engine::Constraint{kind, std::move(text)};
}

// One of these texts, as a schema whose answer is shown without quotes: a grammar.
std::string choices_grammar(const std::vector<std::string>& choices) {
  std::string grammar = "start: ";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    grammar += (i == 0 ? "" : " | ") + write_json(Json(choices[i]));
  }
  return grammar + "\n";
}

void read_structured(Fields& fields, engine::Request& request) {
  const auto name = [&](std::string_view member) { return fields.path_of(member); };
  if (const Json* schema = fields.find("json"); schema != nullptr) {
    const Json parsed =
        schema->is_string() ? parse_body(schema->get_ref<const std::string&>()) : *schema;
    constrain_to_schema(parsed, name("json"), request);
  }
  if (const auto regex = fields.text("regex")) {
    constrain(engine::ConstraintKind::kRegex, *regex, name("regex"), request);
  }
  if (const auto grammar = fields.text("grammar")) {
    constrain(engine::ConstraintKind::kGrammar, *grammar, name("grammar"), request);
  }
  if (const auto choices = fields.texts("choice"); !choices.empty()) {
    constrain(engine::ConstraintKind::kGrammar, choices_grammar(choices), name("choice"), request);
  }
  if (fields.flag("json_object").value_or(false)) {
    constrain_to_schema({{"type", "object"}}, name("json_object"), request);
  }
  fields.accept({"backend", "disable_fallback"});
  fields.refuse({"structural_tag", "whitespace_pattern", "disable_any_whitespace"});
}

}  // namespace

void read_sampling(Fields& fields, const ServedModel& model, engine::Request& request) {
  request.sampling = model.model().recommended_sampling();
  sample::SamplingOptions& sampling = request.sampling;
  constexpr double kMostTemperature = 100.0;
  constexpr double kMostPenalty = 100.0;
  set(fields, "temperature", 0, kMostTemperature, sampling.temperature);
  set(fields, "top_p", 0, 1, sampling.top_p);
  set(fields, "min_p", 0, 1, sampling.min_p);
  if (const auto top_k = fields.integer("top_k", -1, kMaxInt)) {
    sampling.top_k = static_cast<int>(std::max<std::int64_t>(*top_k, 0));  // -1: off, as in vLLM.
  }
  set(fields, "typical_p", 0, 1, sampling.typical_p);
  set(fields, "xtc_probability", 0, 1, sampling.xtc_probability);
  set(fields, "xtc_threshold", 0, 0.5, sampling.xtc_threshold);
  set(fields, "dynatemp_range", 0, kMostTemperature, sampling.dynatemp_range);
  set(fields, "dynatemp_exponent", 0, kMostTemperature, sampling.dynatemp_exponent);
  if (fields.has("presence_penalty") || fields.has("frequency_penalty")) {
    sampling.presence_context_size = 0;  // OpenAI counts all tokens.
    sampling.frequency_context_size = 0;
  }
  set(fields, "presence_penalty", -kMostPenalty, kMostPenalty, sampling.presence_penalty);
  set(fields, "frequency_penalty", -kMostPenalty, kMostPenalty, sampling.frequency_penalty);
  for (const std::string_view name : {"repetition_penalty", "repeat_penalty"}) {
    set(fields, name, 0, kMostPenalty, sampling.repetition_penalty);
  }
  set(fields, "repeat_last_n", 0, sampling.repetition_context_size);
  set(fields, "dry_multiplier", 0, kMostPenalty, sampling.dry_multiplier);
  set(fields, "dry_base", 1, kMostPenalty, sampling.dry_base);
  set(fields, "dry_allowed_length", 0, sampling.dry_allowed_length);
  if (fields.has("dry_sequence_breakers")) {
    sampling.dry_sequence_breakers = fields.texts("dry_sequence_breakers");
  }
  set(fields, "min_tokens", 0, sampling.min_tokens);
  read_logit_bias(fields, model, sampling);
  read_samplers(fields, sampling);
  request.output.ignore_eos = fields.flag("ignore_eos").value_or(false);
  // -1 draws a seed, as in llama-server.
  const auto seed = fields.integer("seed");
  sampling.seed = seed && *seed != -1 ? static_cast<std::uint64_t>(*seed) : new_seed();
  fields.refuse(
      {"mirostat",
       "stop_token_ids",
       "bad_words",
       "allowed_token_ids",
       "include_stop_str_in_output",
       "truncate_prompt_tokens",
       "repetition_detection",
       "logits_processors",
       "use_beam_search"}
  );
}

void read_stop(Fields& fields, std::string_view name, engine::Request& request) {
  request.output.stop = fields.texts(name);
  for (const std::string& stop : request.output.stop) {
    if (stop.empty()) {
      throw bad_field(fields.path_of(name), "a stop text is empty");
    }
  }
}

void constrain_to_schema(const Json& schema, const std::string& name, engine::Request& request) {
  if (!schema.is_object() && !schema.is_boolean()) {
    throw bad_field(name, "expected a JSON schema, got {}", kind_of(schema));
  }
  constrain(engine::ConstraintKind::kJsonSchema, write_json(schema), name, request);
}

void read_constraint(Fields& fields, engine::Request& request) {
  if (const Json* given = fields.object("structured_outputs")) {
    Fields structured(*given, fields.path_of("structured_outputs"));
    read_structured(structured, request);
  }
  if (const Json* schema = fields.find("guided_json")) {
    constrain_to_schema(
        schema->is_string() ? parse_body(schema->get_ref<const std::string&>()) : *schema,
        fields.path_of("guided_json"),
        request
    );
  }
  if (const auto regex = fields.text("guided_regex")) {
    constrain(engine::ConstraintKind::kRegex, *regex, fields.path_of("guided_regex"), request);
  }
  if (const auto grammar = fields.text("guided_grammar")) {
    constrain(
        engine::ConstraintKind::kGrammar, *grammar, fields.path_of("guided_grammar"), request
    );
  }
  if (const auto choices = fields.texts("guided_choice"); !choices.empty()) {
    constrain(
        engine::ConstraintKind::kGrammar,
        choices_grammar(choices),
        fields.path_of("guided_choice"),
        request
    );
  }
  if (const Json* schema = fields.find("json_schema")) {
    constrain_to_schema(*schema, fields.path_of("json_schema"), request);
  }
  fields.refuse({"grammar"});  // llama-server's is GBNF.
}

void read_placement(Fields& fields, engine::Request& request) {
  // vLLM's lower numbers run first.
  if (const auto priority = fields.integer("priority", -kMaxInt, kMaxInt)) {
    request.placement.priority = -static_cast<int>(*priority);
  }
  if (const auto salt = fields.text("cache_salt")) {
    if (salt->empty() || salt->size() > 1024) {
      fields.fail("cache_salt", "expected 1 to 1024 bytes");
    }
    request.placement.cache_salt = *salt;
  }
  request.placement.user = fields.text("user").value_or("").substr(0, 256);
}

}  // namespace saker::server
