// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/request_args.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/options/model_args.h"
#include "saker/cli/options/request_fields.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::cli {
namespace {

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// With letter and other names, as in "-n,--max-tokens" and "--temperature,--temp".
std::string names_of(const RequestField& field) {
  std::string names = (field.name == "max_tokens" ? "-n," : "") + flag_of(field.name);
  for (const std::string_view other : field.other_names()) {
    names += "," + flag_of(other);
  }
  return names;
}

Json parse_object(const std::string& flag, const std::string& text) {
  try {
    Json value = parse_json(text, flag);
    if (value.is_object()) {
      return value;
    }
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool is_named = message.starts_with(flag + ": ");
    throw CLI::ValidationError(flag, is_named ? message.substr(flag.size() + 2) : message);
  }
  throw CLI::ValidationError(flag, "expected a JSON object, got " + text.substr(0, 40));
}

template <typename Integer>
std::optional<Integer> whole_number(std::string_view text) {
  Integer number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

// Parses a decimal integer, signed or not, as JSON does.
Json parse_integer(const std::string& flag, const std::string& text, std::string_view expected) {
  if (const auto number = whole_number<std::uint64_t>(text)) {
    return *number;
  }
  if (const auto number = whole_number<std::int64_t>(text)) {
    return *number;
  }
  throw CLI::ValidationError(flag, fmt::format("got {}, expected {}", quote(text, 40), expected));
}

Json parse_text(const std::string& /*flag*/, const std::string& text) {
  return text;
}

Json parse_whole(const std::string& flag, const std::string& text) {
  return parse_integer(flag, text, "an integer of 64 bits");
}

Json parse_whole_or_auto(const std::string& flag, const std::string& text) {
  return text == "auto" ? Json(text) : parse_integer(flag, text, "an integer or auto");
}

Json parse_switch(const std::string& flag, const std::string& text) {
  if (text == "on" || text == "off") {
    return text == "on";
  }
  if (text == "auto") {
    return text;
  }
  throw CLI::ValidationError(
      flag, fmt::format("got {}, expected on, off or auto", quote(text, 40))
  );
}

Json parse_number(const std::string& flag, const std::string& text) {
  double number = 0.0;
  if (!CLI::detail::lexical_cast(text, number) || !std::isfinite(number)) {
    throw CLI::ValidationError(flag, fmt::format("got {}, expected a number", quote(text, 40)));
  }
  return number;
}

struct FieldGroup {
  std::string_view name;
  std::string_view group;
};

// Groups of the help; fields that are missing here are rarely used sampling options.
constexpr FieldGroup kGroups[] = {
    {"max_tokens", "Answer"},      {"stop", "Answer"},          {"ignore_eos", "Answer"},
    {"min_tokens", "Answer"},      {"logprobs", "Answer"},      {"think", "Prompt"},
    {"template_kwargs", "Prompt"}, {"temperature", "Sampling"}, {"top_p", "Sampling"},
    {"top_k", "Sampling"},         {"min_p", "Sampling"},       {"seed", "Sampling"},
    {"speculate", "Drafts"},       {"acceptance", "Drafts"},    {"draft_depth", "Drafts"},
    {"max_kv_size", "Cache"},      {"kv_bits", "Cache"},        {"adapter", "Adapter"},
    {"adapter_scale", "Adapter"},
};

std::string_view group_of(std::string_view field) {
  const auto* const found = std::ranges::find(kGroups, field, &FieldGroup::name);
  if (found != std::end(kGroups)) {
    return found->group;
  }
  for (const std::string_view prefix : {"repetition_", "presence_", "frequency_", "dry_"}) {
    if (field.starts_with(prefix)) {
      return "Repetition";
    }
  }
  return "More sampling";
}

struct FieldWords {
  std::string_view name;
  const char* type;
};

// Values that help and completion list, for fields whose kind does not tell.
constexpr FieldWords kWords[] = {
    {"kv_bits", "4|8|16|32"},
    {"speculate", "none|prompt-lookup|draft|mtp|dflash"},
    {"acceptance", "coupled|rejection"},
    {"adapter", "PATH"},
};

// Adds the option; `parse` converts its text to its value.
CLI::Option* add_parsed(
    CLI::App& command,
    const RequestField& field,
    Json& value,
    Json (*parse)(const std::string& flag, const std::string& text),
    const std::string& type
) {
  return command
      .add_option_function<std::string>(
          names_of(field),
          [&value, &field, parse](const std::string& text) {
            value = parse(flag_of(field.name), text);
          },
          std::string(field.help)
      )
      ->type_name(type);
}

}  // namespace

void RequestArgs::add_to(CLI::App& command) {
  using Kind = RequestField::Kind;
  for (const RequestField& field : request_fields()) {
    const std::string flag = names_of(field);
    const std::string help(field.help);
    Json& value = given_[std::string(field.name)];
    CLI::Option* option = nullptr;
    switch (field.kind) {
      case Kind::kInteger:
        option = add_parsed(command, field, value, parse_whole, "INT");
        break;
      case Kind::kNumber:
        option = add_parsed(command, field, value, parse_number, "NUM");
        break;
      case Kind::kFlag:
        option = command.add_flag_callback(flag, [&value] { value = true; }, help);
        break;
      case Kind::kText:
        option = add_parsed(command, field, value, parse_text, "TEXT");
        break;
      case Kind::kTexts:
        option =
            command
                .add_option_function<std::vector<std::string>>(
                    flag, [&value](const std::vector<std::string>& texts) { value = texts; }, help
                )
                ->expected(1)
                ->take_all()
                ->type_name("TEXT");
        break;
      case Kind::kObject:
        option = add_parsed(command, field, value, parse_object, "JSON");
        break;
      case Kind::kIntegerOrAuto:
        option = add_parsed(command, field, value, parse_whole_or_auto, "INT|auto");
        break;
      case Kind::kSwitch:
        option = add_parsed(command, field, value, parse_switch, "on|off|auto");
        break;
    }
    option->group(std::string(group_of(field.name)));
    if (const auto* const words = std::ranges::find(kWords, field.name, &FieldWords::name);
        words != std::end(kWords)) {
      option->type_name(words->type);
    }
  }
}

void RequestArgs::check() const {
  engine::GenerateRequest request;
  try {
    apply_given(request);
    check_request(request);
  } catch (const Error& error) {
    std::string message = error.what();  // Begins with the field's name.
    const std::size_t end = std::min(message.find_first_of(": ="), message.size());
    const std::size_t rest = message.find_first_not_of(": =", end);
    throw CLI::ValidationError(
        flag_of(message.substr(0, end)), rest == std::string::npos ? message : message.substr(rest)
    );
  }
}

void RequestArgs::apply_given(engine::GenerateRequest& request) const {
  for (const RequestField& field : request_fields()) {
    const auto found = given_.find(field.name);
    if (found != given_.end() && !found->second.is_null()) {
      field.set(request, found->second);
    }
  }
}

bool RequestArgs::gives(std::string_view field) const {
  const auto found = given_.find(field);
  return found != given_.end() && !found->second.is_null();
}

void RequestArgs::warn(const engine::Engine& engine) const {
  const auto* chat_template = engine.chat_template();
  if (given_.at("think").is_boolean() &&
      (chat_template == nullptr || !chat_template->switches_thinking())) {
    spdlog::warn("--think changes nothing: the model's chat template has no switch for it");
  }
}

std::filesystem::path RequestArgs::whole_adapter(const ModelDefaults& defaults) const {
  engine::GenerateRequest request;
  defaults.apply(request);
  apply_given(request);
  return cli::whole_adapter(request.adapter, request.adapter_scale);
}

void RequestArgs::apply(const ModelDefaults& defaults, engine::GenerateRequest& request) const {
  std::random_device device;
  request.sampling.seed = (std::uint64_t{device()} << 32) | device();
  defaults.apply(request);
  apply_given(request);
}

}  // namespace saker::cli
