// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/embed/text_inputs.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/cli/io/json_lines.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

namespace saker::cli {
namespace {

std::int32_t token_id(const Json& value) {
  require(
      value.is_number_integer() && value >= 0 && value <= std::numeric_limits<std::int32_t>::max(),
      ErrorCode::kInvalidArgument,
      "tokens: got {}, expected token ids",
      value.is_number() ? value.dump() : value.type_name()
  );
  return value.get<std::int32_t>();
}

engine::EmbedInput input_of(const Json& record) {
  if (record.is_string()) {
    return record.get<std::string>();
  }
  const bool is_object = record.is_object();
  const bool has_text = is_object && record.contains("text") && record["text"].is_string();
  const bool has_tokens = is_object && record.contains("tokens") && record["tokens"].is_array();
  require(
      has_text != has_tokens,
      ErrorCode::kInvalidArgument,
      "expected a text, or an object with either a \"text\" or \"tokens\""
  );
  if (has_text) {
    return record["text"].get<std::string>();
  }
  std::vector<std::int32_t> ids;
  for (const Json& id : record["tokens"]) {
    ids.push_back(token_id(id));
  }
  return ids;
}

}  // namespace

TextOptions add_text_args(CLI::App& command, TextArgs& args, const std::string& each) {
  TextOptions options{
      .texts = command.add_option("TEXT,-t,--text", args.texts, each),
      .file = command.add_option(
          "-f,--file",
          args.file,
          "FILE.jsonl with a text, {\"text\"} or {\"tokens\"} a line; any other file is one text, "
          "'-' standard input"
      ),
  };
  options.texts->type_name("TEXT")->group("Input");
  options.file->type_name("FILE")->group("Input");
  return options;
}

std::vector<engine::EmbedInput> read_inputs(const TextArgs& args) {
  if (args.file.empty()) {
    return {args.texts.begin(), args.texts.end()};
  }
  std::vector<engine::EmbedInput> inputs;
  if (!args.file.ends_with(".jsonl")) {
    inputs.emplace_back(read_text(args.file));
    return inputs;
  }
  JsonLines lines(args.file);
  while (const auto line = lines.next()) {
    const std::string where = lines.where();
    const Json record = parse_json(*line, where);
    try {
      inputs.push_back(input_of(record));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", where, error.what()));
    }
  }
  lines.warn_if_empty();
  return inputs;
}

std::vector<std::string> read_texts(const TextArgs& args) {
  std::vector<std::string> texts;
  for (engine::EmbedInput& input : read_inputs(args)) {
    auto* const text = std::get_if<std::string>(&input);
    require(
        text != nullptr,
        ErrorCode::kInvalidArgument,
        "{}: document {} has tokens, expected a text",
        args.file,
        texts.size()
    );
    texts.push_back(std::move(*text));
  }
  return texts;
}

}  // namespace saker::cli
