// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/request_args.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/cli/io/output.h"
#include "saker/cli/options/model_args.h"
#include "saker/engine/options/apply_options.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::cli {
namespace {

using Kind = engine::OptionKind;

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// With letter and other names, as in "-n,--max-tokens" and "--temperature,--temp".
std::string names_of(const engine::RequestOption& option) {
  std::string names = (option.name == "max_tokens" ? "-n," : "") + flag_of(option.name);
  for (const std::string_view other : option.other_names()) {
    names += "," + flag_of(other);
  }
  return names;
}

// The message without the flag that it begins with.
std::string without_name(const std::string& message, const std::string& flag) {
  return message.starts_with(flag + ": ") ? message.substr(flag.size() + 2) : message;
}

Json parse_object(const std::string& flag, const std::string& text) {
  try {
    Json value = parse_json(text, flag);
    if (value.is_object()) {
      return value;
    }
  } catch (const Error& error) {
    throw CLI::ValidationError(flag, without_name(error.what(), flag));
  }
  throw CLI::ValidationError(flag, "expected a JSON object, got " + text.substr(0, 40));
}

// JSON, or the path of a file with it.
Json parse_schema(const std::string& flag, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '{';
  try {
    if (is_json || text == "true" || text == "false") {
      return parse_json(text, flag);
    }
    return read_json_file(text);
  } catch (const Error& error) {
    throw CLI::ValidationError(flag, without_name(error.what(), flag));
  }
}

// A list as JSON, or the path of a file with it.
Json parse_list(const std::string& flag, const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && text[first] == '[';
  try {
    return is_json ? parse_json(text, flag) : read_json_file(text);
  } catch (const Error& error) {
    throw CLI::ValidationError(flag, without_name(error.what(), flag));
  }
}

Json parse_file(const std::string& flag, const std::string& path) {
  try {
    return read_text(path);
  } catch (const Error& error) {
    throw CLI::ValidationError(flag, error.what());
  }
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

struct KindOfText {
  // Converts an option's text to its value. Flags and lists of texts have no use for it.
  Json (*parse)(const std::string& flag, const std::string& text) = parse_text;
  const char* type = "";  // In help.
};

KindOfText kind_of_text(Kind kind) {
  switch (kind) {
    case Kind::kInteger:
      return {parse_whole, "INT"};
    case Kind::kNumber:
      return {parse_number, "NUM"};
    case Kind::kFlag:
      return {};
    case Kind::kText:
    case Kind::kTexts:
      return {parse_text, "TEXT"};
    case Kind::kObject:
    case Kind::kJson:
      return {parse_object, "JSON"};
    case Kind::kIntegerOrAuto:
      return {parse_whole_or_auto, "INT|auto"};
    case Kind::kSwitch:
      return {parse_switch, "on|off|auto"};
    case Kind::kPath:
      return {parse_text, "PATH"};
    case Kind::kSchema:
      return {parse_schema, "FILE|JSON"};
    case Kind::kTextFile:
      return {parse_file, "FILE"};
    case Kind::kList:
      return {parse_list, "FILE|JSON"};
  }
  return {};
}

CLI::Option* add_option(CLI::App& command, const engine::RequestOption& option, Json& value) {
  const std::string names = names_of(option);
  const std::string help = engine::help_with_default(option);
  if (option.kind == Kind::kFlag) {
    return command.add_flag_callback(names, [&value] { value = true; }, help);
  }
  if (option.kind == Kind::kTexts) {
    const auto take = [&value](const std::vector<std::string>& texts) { value = texts; };
    return command.add_option_function<std::vector<std::string>>(names, take, help)
        ->expected(1)
        ->take_all();
  }
  return command.add_option_function<std::string>(
      names,
      [&value, &option](const std::string& text) {
        value = kind_of_text(option.kind).parse(flag_of(option.name), text);
      },
      help
  );
}

}  // namespace

void RequestArgs::add_to(CLI::App& command, bool engine::Doors::* door) {
  for (const engine::RequestOption& option : engine::request_options()) {
    if (option.doors.*door) {
      const std::string type(
          option.values.empty() ? kind_of_text(option.kind).type : option.values
      );
      add_option(command, option, given_[std::string(option.name)])
          ->type_name(type)
          ->group(std::string(option.group));
    }
  }
}

void RequestArgs::check() const {
  engine::Request request;
  try {
    apply_given(request);
    engine::check_request(request);
  } catch (const Error& error) {
    std::string message = error.what();  // Begins with the option's name.
    const std::size_t end = std::min(message.find_first_of(": ="), message.size());
    const std::size_t rest = message.find_first_not_of(": =", end);
    throw CLI::ValidationError(
        flag_of(message.substr(0, end)), rest == std::string::npos ? message : message.substr(rest)
    );
  }
}

void RequestArgs::apply_given(engine::Request& request) const {
  for (const engine::RequestOption& option : engine::request_options()) {
    const auto found = given_.find(option.name);
    if (found != given_.end() && !found->second.is_null()) {
      option.set(option, found->second, request);
    }
  }
}

bool RequestArgs::gives(std::string_view option) const {
  const auto found = given_.find(option);
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
  engine::Request request;
  defaults.apply(request);
  apply_given(request);
  return cli::whole_adapter(request.placement.adapter, request.placement.adapter_scale);
}

void RequestArgs::apply(const ModelDefaults& defaults, engine::Request& request) const {
  std::random_device device;
  request.sampling.seed = (std::uint64_t{device()} << 32) | device();
  defaults.apply(request);
  apply_given(request);
}

}  // namespace saker::cli
