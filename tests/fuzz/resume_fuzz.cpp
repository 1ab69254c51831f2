// SPDX-License-Identifier: Apache-2.0
// Any bytes as what `score --resume` goes on from: lines of the input, a zero byte, and what an
// earlier run wrote. Lines are taken or refused by typed errors, those that are taken answer their
// record, and what is left of the output are these lines.
#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/cli/io/json_lines.h"
#include "saker/cli/records/record_output.h"
#include "saker/cli/score/kept_answer.h"
#include "saker/engine/options/apply_options.h"

#include "tests/fuzz/input.h"
#include "tests/support/temporary_dir.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

namespace cli = saker::cli;

using saker::Json;
using saker::fuzz::expect;

// Of records that are given as tokens: an engine would encode the texts of others.
saker::engine::ScorePrompt prompt_of(const Json& record) {
  saker::engine::Request holder;
  saker::engine::apply_record(record, holder);
  saker::require(
      holder.prompt.tokens.has_value(), saker::ErrorCode::kInvalidArgument, "expected tokens"
  );
  return {.tokens = *std::move(holder.prompt.tokens)};
}

cli::AskedRecord record_of(const std::string& text, const cli::JsonLines& lines) {
  cli::AskedRecord record{.id = Json(Json::value_t::discarded), .line = lines.line()};
  Json json(Json::value_t::discarded);
  try {
    json = saker::parse_json(text, lines.where());
  } catch (const saker::Error&) {
    // Its answer is a failure.
  }
  if (json.is_object() && json.contains("id")) {
    record.id = json["id"];
  }
  record.prompt = [json] { return prompt_of(json); };
  return record;
}

// Lines that were taken; none: the output belongs to something else.
std::optional<int> resume(const std::filesystem::path& input, cli::RecordOutput& output) {
  saker::engine::ScoreRequest options{.views = {{.key = "base"}}};
  cli::JsonLines lines(input);
  while (const std::optional<Json> kept = output.next_kept()) {
    const auto text = lines.next();
    if (!text || !cli::answers(*kept, record_of(*text, lines))) {
      return std::nullopt;
    }
    for (const int top_k : {0, 2}) {
      options.top_k = top_k;
      cli::fits_options(*kept, options, cli::WithDifferences::kNo);
    }
    expect(kept->is_object() && (cli::is_failure(*kept) || kept->at("tokens").is_array()));
  }
  return output.kept_lines();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const saker::testing::TemporaryDir dir;
  saker::fuzz::Input input(data, size);
  const auto records = dir.write("records", input.text());
  const std::string_view earlier = input.rest();
  const auto path = dir.write("answers", earlier);
  try {
    cli::RecordOutput output(path, cli::RecordOutput::Start::kResume);
    if (const std::optional<int> taken = resume(records, output)) {
      output.write("{}\n");
      std::ifstream file(path, std::ios::binary);
      const std::string left{std::istreambuf_iterator<char>(file), {}};
      const std::size_t whole = earlier.rfind('\n') + 1;  // 0 where there is none.
      expect(left == std::string(earlier.substr(0, whole)) + "{}\n");
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
