// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/records/record_files.h"

#include "saker/base/error.h"

#include <system_error>

namespace saker::cli {

void add_record_files(CLI::App& command, RecordFiles& files, CLI::Option& file) {
  CLI::Option* const output =
      command
          .add_option(
              "-o,--output", files.output, "With -f FILE.jsonl: write the answers to this file"
          )
          ->needs(&file)
          ->type_name("FILE");
  command
      .add_flag(
          "--resume",
          files.resume,
          "Continue an --output that was interrupted: its whole lines stay, other records run"
      )
      ->needs(output);
  add_shard_option(command, files.shard)->needs(output);
}

void set_job(RecordFiles& files, const CLI::App& command, const std::filesystem::path& model) {
  if (files.shard.count > 1) {
    files.job = job_of(command, model, files.shard);
  }
}

RecordOutput open_output(const RecordFiles& files) {
  if (files.output.empty()) {
    return {};
  }
  std::error_code none;
  require(
      !std::filesystem::equivalent(files.file, files.output, none),
      ErrorCode::kInvalidArgument,
      "{}: is input and output",
      files.file.string()
  );
  const auto start = files.resume ? RecordOutput::Start::kResume : RecordOutput::Start::kEmpty;
  if (!files.job) {
    return {files.output, start};
  }
  require(
      !std::filesystem::exists(files.output) || std::filesystem::is_regular_file(files.output),
      ErrorCode::kInvalidArgument,
      "{}: is no regular file, beside which --shard writes what the job is",
      files.output.string()
  );
  RecordOutput output(files.output, start);  // Locks it first.
  begin_job(*files.job, files.output, files.resume ? JobStart::kContinued : JobStart::kNew);
  return output;
}

}  // namespace saker::cli
