// SPDX-License-Identifier: Apache-2.0
// `saker merge`: joins the outputs of a job's shards, in the order of the input.
#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/cli/io/output.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/options/command.h"
#include "saker/cli/records/job.h"
#include "saker/cli/records/record_lines.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

struct MergeArgs {
  std::filesystem::path input;
  std::vector<std::filesystem::path> outputs;
  std::filesystem::path merged;  // Empty: standard output.
};

// A shard's output, read line by line.
class ShardFile {
 public:
  explicit ShardFile(std::filesystem::path path)
      : path_(std::move(path)), stream_(path_, std::ios::binary) {
    require(stream_.is_open(), ErrorCode::kNotFound, "{}: can't be opened", path_.string());
  }

  const std::filesystem::path& path() const { return path_; }

  int line() const { return line_; }

  // The next whole line; empty at the end, and for the last one of a run that was killed.
  std::optional<std::string> next() {
    std::string line;
    if (!std::getline(stream_, line) || stream_.eof()) {
      return std::nullopt;
    }
    ++line_;
    return line;
  }

 private:
  std::filesystem::path path_;
  std::ifstream stream_;
  int line_ = 0;
};

// The outputs by shard: all shards of one job.
std::vector<ShardFile> open_shards(const std::vector<std::filesystem::path>& outputs) {
  const Job first = read_job(outputs.front());
  const int count = first.shard.count;
  std::vector<const std::filesystem::path*> by_shard(outputs.size(), nullptr);
  require(
      outputs.size() == static_cast<std::size_t>(count),
      ErrorCode::kInvalidArgument,
      "got {} outputs, expected the {} of {}'s job",
      outputs.size(),
      count,
      outputs.front().string()
  );
  for (const auto& output : outputs) {
    const Job job = read_job(output);
    require_one_job(job, output, first, outputs.front());
    require(
        job.shard.count == count,
        ErrorCode::kInvalidArgument,
        "{}: has shard {}, expected one of {}",
        output.string(),
        job.shard.text(),
        count
    );
    const auto*& place = by_shard[static_cast<std::size_t>(job.shard.index)];
    require(
        place == nullptr,
        ErrorCode::kInvalidArgument,
        "{}: has shard {}, as {} has",
        output.string(),
        job.shard.text(),
        place == nullptr ? "" : place->string()
    );
    place = &output;
  }
  std::vector<ShardFile> files;
  files.reserve(by_shard.size());
  for (const auto* output : by_shard) {
    files.emplace_back(*output);
  }
  return files;
}

// Standard output, or a file that appears whole. So a merge that fails changes no file.
class MergedFile {
 public:
  // An empty path: standard output.
  explicit MergedFile(const std::filesystem::path& path) {
    if (!path.empty()) {
      file_.emplace(path);
    }
  }

  void write(std::string_view line) {
    if (file_) {
      file_->write(line);
    } else {
      print(line);
    }
  }

  void commit() {
    if (file_) {
      file_->commit();
    }
  }

 private:
  std::optional<AtomicFile> file_;
};

// Throws if the merged file would replace one of the files that it is made of.
void require_new(const MergeArgs& args) {
  std::vector<std::filesystem::path> sources = args.outputs;
  sources.push_back(args.input);
  for (const auto& source : sources) {
    std::error_code none;
    require(
        args.merged.empty() || !std::filesystem::equivalent(source, args.merged, none),
        ErrorCode::kInvalidArgument,
        "{}: is input and output",
        source.string()
    );
  }
}

// Throws unless the answer can be the record's. Answers without ids are those of records without.
void require_answer(const Json& answer, const RecordLine& record, const ShardFile& file) {
  const Json id = answer.is_object() ? answer.value("id", Json()) : Json();
  require(
      id == (record.id.is_discarded() ? Json() : record.id),
      ErrorCode::kInvalidArgument,
      "{}: its line {} doesn't answer the input's line {}: got id {}, expected {}",
      file.path().string(),
      file.line(),
      record.line,
      id.dump(),
      record.id.is_discarded() ? "none" : record.id.dump()
  );
}

int run_merge(const MergeArgs& args) {
  require_new(args);
  std::vector<ShardFile> shards = open_shards(args.outputs);
  RecordLines records(args.input);
  MergedFile merged(args.merged);
  std::int64_t number = 0;
  int failures = 0;
  while (const auto record = records.next()) {
    const int index = shard_of(record->id, number++, static_cast<int>(shards.size()));
    ShardFile& file = shards[static_cast<std::size_t>(index)];
    const std::optional<std::string> line = file.next();
    require(
        line.has_value(),
        ErrorCode::kInvalidArgument,
        "{}: ends before the answer to {}: its run is not done, --resume goes on with it",
        file.path().string(),
        records.lines().where()
    );
    const Json answer = parse_json(*line, fmt::format("{}:{}", file.path().string(), file.line()));
    require_answer(answer, *record, file);
    failures += answer.is_object() && answer.contains("error") ? 1 : 0;
    merged.write(*line + "\n");
  }
  for (ShardFile& file : shards) {
    require(
        !file.next(),
        ErrorCode::kInvalidArgument,
        "{}: has more answers than {} has records",
        file.path().string(),
        args.input.string()
    );
  }
  merged.commit();
  require(
      failures == 0,
      ErrorCode::kInvalidArgument,
      "{}: {} records failed",
      args.input.string(),
      failures
  );
  return 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto args = std::make_shared<MergeArgs>();
  CLI::App& command = *app.add_subcommand(
      "merge", "Join the outputs of a job's shards, in the order of its records"
  );
  command.add_option("INPUT", args->input, "The records, FILE.jsonl")
      ->required()
      ->type_name("FILE");
  command.add_option("OUTPUTS", args->outputs, "The outputs of all shards, in any order")
      ->required()
      ->type_name("FILE");
  command.add_option("-o,--output", args->merged, "Write to this file [standard output]")
      ->type_name("FILE");
  command.callback([=, &action] { action = [args] { return run_merge(*args); }; });
}

}  // namespace saker::cli
