// SPDX-License-Identifier: Apache-2.0
#pragma once

// A job whose records several runs share. Each run's output OUT has a file OUT.job.json beside it.
// That file says what was asked of which model. Outputs of one job have equal bits wherever they
// ran, so that they can be merged.

#include "saker/base/json/json.h"
#include "saker/cli/records/shard.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <optional>

namespace saker::cli {

struct Job {
  Json what = Json::object();  // Command, options, model, adapters, version, instruction set.
  Shard shard = {};
};

std::filesystem::path job_file_of(const std::filesystem::path& output);

// The job of a command that was parsed. Reads all files of the model and those that options name,
// such as adapters and schemas. Options that change no answer, such as the number of threads, are no
// part of it.
Job job_of(const CLI::App& command, const std::filesystem::path& model, Shard shard);

// Writes the file beside an output. If an output with answers is continued, the file has to be there
// and to say the same: throws kInvalidArgument, naming what differs.
enum class JobStart : std::uint8_t { kNew, kContinued };
void begin_job(const Job& job, const std::filesystem::path& output, JobStart start);

// The job of an output. Throws kNotFound without its file, kCorruptData for a file that is none.
Job read_job(const std::filesystem::path& output);

// Throws kInvalidArgument, naming both outputs, if they are of different jobs.
void require_one_job(
    const Job& one,
    const std::filesystem::path& output,
    const Job& other,
    const std::filesystem::path& other_output
);

}  // namespace saker::cli
