// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a command that answers records: the input, and an output that a later run may
// continue and that may be one of a job's shares.

#include "saker/cli/records/job.h"
#include "saker/cli/records/record_output.h"
#include "saker/cli/records/shard.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>

namespace saker::cli {

struct RecordFiles {
  std::filesystem::path file;
  std::filesystem::path output;  // Empty: standard output.
  bool resume = false;
  Shard shard = {};
  std::optional<Job> job = {};  // With a shard.
};

// Adds --output, --resume and --shard, which require `file`.
void add_record_files(CLI::App& command, RecordFiles& files, CLI::Option& file);

// Once the options are read: sets the job if there is a shard, see job_of().
void set_job(RecordFiles& files, const CLI::App& command, const std::filesystem::path& model);

// Opens the output and begins its job. Throws kInvalidArgument, and changes no file, for an output
// that is the input, that another run writes or that belongs to another job.
RecordOutput open_output(const RecordFiles& files);

}  // namespace saker::cli
