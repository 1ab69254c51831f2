// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/records.h"

#include "saker/base/error.h"
#include "saker/cli/io/progress.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/checks.h"
#include "saker/cli/records/record_lines.h"
#include "saker/cli/records/record_output.h"
#include "saker/cli/score/kept_answer.h"
#include "saker/cli/score/views.h"
#include "saker/engine/records/result_json.h"
#include "saker/engine/records/score_record.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace saker::cli {
namespace {

// A line of the input, or the reason why it can't be scored.
struct Record {
  Json id = Json(Json::value_t::discarded);
  int line = 0;
  engine::ScoreRequest request = {};
  std::optional<Error> error = {};
};

Json failure(const Record& record, const Error& error) {
  Json answer = record_error(record.id, error);
  answer["error"]["line"] = record.line;
  return answer;
}

// The record's title on a page.
std::string title_of(const Record& record) {
  if (record.id.is_string()) {
    return record.id.get<std::string>();
  }
  return record.id.is_discarded() || record.id.is_null() ? fmt::format("line {}", record.line)
                                                         : record.id.dump();
}

class RecordsScorer {
 public:
  RecordsScorer(
      engine::Engine& engine,
      const RecordsInput& input,
      const engine::ScoreRequest& options,
      engine::ScoreInstruments& instruments
  )
      : engine_(engine),
        input_(input),
        options_(options),
        instruments_(instruments),
        lines_(input.file, input.shard),
        output_(open_output(input)) {}

  int run() {
    int failures = skip_answered();
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(input_.file, unknown);
    Progress progress(unknown ? 0 : size, "scoring");
    for (auto records = read_batch(); !records.empty(); records = read_batch()) {
      failures += answer(records);
      progress.set(lines_.lines().position());
    }
    lines_.lines().warn_if_empty();
    require(
        failures == 0,
        ErrorCode::kInvalidArgument,
        "{}: {} records failed",
        input_.file.string(),
        failures
    );
    return 0;
  }

 private:
  // Skips the records that the earlier run has answered; returns how many of them failed.
  int skip_answered() {
    int failures = 0;
    while (const std::optional<Json> kept = output_.next_kept()) {
      const std::optional<Record> record = read();
      require(
          record && answers(*kept, asked(*record)),
          ErrorCode::kInvalidArgument,
          "{}: its line {} doesn't answer {}: it belongs to other input or another model",
          input_.output.string(),
          output_.kept_lines(),
          record ? lines_.lines().where() : "anything"
      );
      require(
          fits_options(*kept, options_, input_.diff ? WithDifferences::kYes : WithDifferences::kNo),
          ErrorCode::kInvalidArgument,
          "{}: its line {} has other views, candidates or differences: it belongs to other options",
          input_.output.string(),
          output_.kept_lines()
      );
      failures += is_failure(*kept) ? 1 : 0;
    }
    return failures;
  }

  AskedRecord asked(const Record& record) const {
    return {record.id, record.line, [this, &record] {
              if (record.error) {
                throw Error(*record.error);
              }
              return engine_.score_prompt(record.request);
            }};
  }

  std::optional<Record> read() {
    std::optional<RecordLine> line = lines_.next();
    if (!line) {
      return std::nullopt;
    }
    Record record{.id = std::move(line->id), .line = line->line, .error = std::move(line->error)};
    if (!record.error) {
      try {
        record.request = engine::make_score_request(line->json, options_);
      } catch (const Error& error) {
        record.error = error;
      }
    }
    return record;
  }

  std::vector<Record> read_batch() {
    std::vector<Record> records;
    while (records.size() < static_cast<std::size_t>(input_.batch)) {
      std::optional<Record> record = read();
      if (!record) {
        break;
      }
      records.push_back(std::move(*record));
    }
    return records;
  }

  Json success(const Record& record, const engine::ScoreResult& result) const {
    Json answer = with_id(record.id, to_json(result));
    if (input_.diff) {
      answer["diff"] = to_json(engine::differences(result, options_.views));
    }
    return answer;
  }

  // Writes a line for each record; returns how many failed.
  int answer(std::vector<Record>& records) {
    std::vector<engine::ScoreRequest> requests;
    for (Record& record : records) {
      if (!record.error) {
        requests.push_back(std::move(record.request));
      }
    }
    const std::vector<engine::ScoreOutcome> outcomes = engine_.score(requests, instruments_);
    auto next = outcomes.begin();
    int failures = 0;
    for (const Record& record : records) {
      const Error* error = record.error ? &*record.error : std::get_if<Error>(&*next);
      if (error != nullptr) {
        ++failures;
        output_.write(dump_line(failure(record, *error)));
        if (input_.page != nullptr) {
          input_.page->add_failure(title_of(record), error->what());
        }
      } else {
        const auto& result = std::get<engine::ScoreResult>(*next);
        output_.write(dump_line(success(record, result)));
        if (input_.page != nullptr) {
          input_.page->add(
              title_of(record),
              result,
              engine::differences(result, options_.views),
              page_tokens(result.tokens, engine_.tokenizer())
          );
        }
      }
      next += record.error ? 0 : 1;
    }
    return failures;
  }

  engine::Engine& engine_;
  const RecordsInput& input_;
  const engine::ScoreRequest& options_;
  engine::ScoreInstruments& instruments_;
  RecordLines lines_;
  RecordOutput output_;
};

}  // namespace

void add_records_input(CLI::App& command, RecordsInput& input, CLI::Option& file) {
  add_record_files(command, input, file);
  command.add_option("--batch", input.batch, "With -f: records that run in one batch [64]")
      ->needs(&file)
      ->check(between(1, 1 << 16))
      ->type_name("INT");
}

int score_records(
    engine::Engine& engine,
    const RecordsInput& input,
    const engine::ScoreRequest& options,
    engine::ScoreInstruments& instruments
) {
  return RecordsScorer(engine, input, options, instruments).run();
}

}  // namespace saker::cli
