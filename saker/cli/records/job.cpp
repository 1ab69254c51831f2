// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/records/job.h"

#include "saker/base/checksum.h"
#include "saker/base/error.h"
#include "saker/base/files/atomic_file.h"
#include "saker/base/mapped_file.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/model_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

// They change no answer, or are a part of the job by what they name.
constexpr std::array<std::string_view, 13> kBeside = {
    "model",
    "file",
    "output",
    "resume",
    "shard",
    "batch",
    "threads",
    "json",
    "verbose",
    "trace",
    "prefix-cache",
    "cache-memory",
    "prefix-disk"
};

std::string name_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() ? option.get_name() : names.front();
}

// A checksum of a file's content, or of the names and contents of a folder's files.
std::string checksum_of(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  const bool is_folder = std::filesystem::is_directory(path);
  if (is_folder) {
    for (const auto& item : std::filesystem::directory_iterator(path)) {
      if (item.is_regular_file()) {
        files.push_back(item.path());
      }
    }
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  Checksum sum;
  for (const auto& file : files) {
    const std::string name = is_folder ? file.filename().string() : std::string();
    const auto mapped = MappedFile::open(file);
    const std::uint64_t size = mapped->bytes().size();
    sum.add(std::as_bytes(std::span(name)));
    sum.add(std::as_bytes(std::span(&size, 1)));
    sum.add(mapped->bytes());
  }
  return fmt::format("{:016x}", sum.value());
}

bool has_no_answers(const std::filesystem::path& path) {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path, none);
  return none || size == 0;
}

// The values of an option. Files and folders count by what is in them, not by their names.
Json value_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const bool is_path =
      type.find("FILE") != std::string::npos || type.find("DIR") != std::string::npos;
  Json values = Json::array();
  for (const std::string& value : option.results()) {
    const std::size_t equals =
        type.find("NAME") != std::string::npos ? value.find('=') : std::string::npos;
    const std::string path = equals == std::string::npos ? value : value.substr(equals + 1);
    std::error_code none;
    if (is_path && std::filesystem::exists(path, none)) {
      values.push_back(value.substr(0, value.size() - path.size()) + checksum_of(path));
    } else {
      values.push_back(value);
    }
  }
  return values;
}

}  // namespace

std::filesystem::path job_file_of(const std::filesystem::path& output) {
  return output.string() + ".job.json";
}

Job job_of(const CLI::App& command, const std::filesystem::path& model, Shard shard) {
  Json options = Json::object();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = name_of(*option);
    if (option->count() > 0 && std::ranges::find(kBeside, name) == kBeside.end()) {
      options[name] = value_of(*option);
    }
  }
  return {
      .what =
          {{"saker", SAKER_VERSION},
           {"command", command.get_name()},
           {"model", load::model_identity(load::resolve_model(model.string()))},
           {"options", options}},
      .shard = shard,
  };
}

void begin_job(const Job& job, const std::filesystem::path& output, JobStart start) {
  const bool begun = std::filesystem::exists(job_file_of(output)) || !has_no_answers(output);
  if (start == JobStart::kContinued && begun) {
    const Job before = read_job(output);
    require(
        before.shard == job.shard,
        ErrorCode::kInvalidArgument,
        "{}: has shard {}, not {}",
        output.string(),
        before.shard.text(),
        job.shard.text()
    );
    require_one_job(before, output, job, "this run");
    return;
  }
  Json file = job.what;
  file["shard"] = job.shard.text();
  AtomicFile written(job_file_of(output));
  written.write(file.dump(2) + "\n");
  written.commit();
}

Job read_job(const std::filesystem::path& output) {
  const auto path = job_file_of(output);
  require(
      std::filesystem::exists(path),
      ErrorCode::kNotFound,
      "{}: is not there: {} was not made with --shard",
      path.string(),
      output.string()
  );
  Job job{.what = parse_json(read_file(path, kMostBytes), path.string())};
  const Json shard = job.what.is_object() ? job.what.value("shard", Json()) : Json();
  const auto read = shard.is_string() ? read_shard(shard.get<std::string>()) : std::nullopt;
  require(
      read.has_value(),
      ErrorCode::kCorruptData,
      "{}: its shard is {}, expected I/N",
      path.string(),
      shard.dump()
  );
  job.shard = *read;
  job.what.erase("shard");
  return job;
}

void require_one_job(
    const Job& one,
    const std::filesystem::path& output,
    const Job& other,
    const std::filesystem::path& other_output
) {
  for (const char* member : {"command", "saker", "model", "options"}) {
    const Json mine = one.what.value(member, Json());
    const Json others = other.what.value(member, Json());
    require(
        mine == others,
        ErrorCode::kInvalidArgument,
        "{}: is of another job than {}: its {} is {}, not {}",
        output.string(),
        other_output.string(),
        member,
        mine.dump(),
        others.dump()
    );
  }
}

}  // namespace saker::cli
