// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/hub/inspect_remote.h"

#include "saker/base/error.h"
#include "saker/cli/hub/asking.h"
#include "saker/cli/hub/size_text.h"
#include "saker/cli/io/interrupt.h"
#include "saker/cli/io/result_json.h"
#include "saker/cli/io/temporary_folder.h"
#include "saker/hub/environment.h"
#include "saker/hub/remote/remote_model.h"
#include "saker/load/inspect/file_heads.h"
#include "saker/load/inspect/inspection_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

namespace saker::cli {
namespace {

namespace fs = std::filesystem;

hub::RemoteModel read(const hub::ModelName& name, const hub::RemoteModelOptions& options) {
  const auto wanted = [](const hub::RemotePart& part) {
    return load::bytes_of_header(part.path, std::as_bytes(std::span(part.bytes)), part.size);
  };
  return hub::read_remote_model(name, wanted, options);
}

// Writes the files as a pull would lay them out, with holes for missing bytes.
void lay_out(const hub::RemoteModel& model, const fs::path& folder) {
  for (const hub::RemotePart& part : model.parts) {
    const fs::path path = folder / part.path;  // Stays inside: hub::is_file_path.
    fs::create_directories(path.parent_path());
    load::write_file_head(path, part.bytes, part.size);
  }
}

// Replaces the temporary folder in messages by the model's name.
std::string renamed(std::string text, const fs::path& folder, const std::string& name) {
  const std::string& old = folder.native();
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at)) {
    text.replace(at, old.size(), name);
    at += name.size();
  }
  return text;
}

load::Inspection judge(
    const hub::RemoteModel& model, const std::string& name, std::optional<int> kv_bits
) {
  const TemporaryFolder folder;
  lay_out(model, folder.path());
  try {
    load::Inspection found =
        load::inspect(folder.path() / model.gguf, kv_bits, load::Weights::kToCome);
    found.path = name;
    found.reason = renamed(found.reason, folder.path(), name);
    for (std::string& warning : found.warnings) {
      warning = renamed(warning, folder.path(), name);
    }
    return found;
  } catch (const Error& error) {
    throw Error(error.code(), renamed(error.what(), folder.path(), name));
  }
}

// Free bytes on the file system of `path`, or of its nearest existing parent.
std::optional<std::uintmax_t> free_bytes(fs::path path) {
  std::error_code failed;
  while (!fs::exists(path, failed) && path.has_relative_path()) {
    path = path.parent_path();
  }
  const fs::space_info space = fs::space(path, failed);
  return failed ? std::nullopt : std::optional(space.available);
}

}  // namespace

RemoteInspection inspect_remote(const hub::ModelName& name, std::optional<int> kv_bits) {
  std::stop_source stop;
  InterruptWatcher watcher;
  watcher.set_handler([&stop] { stop.request_stop(); });
  const hub::RemoteModel model =
      read(name, {.retrying = say_asking(name), .stop = stop.get_token()});
  return {
      .inspection = judge(model, hub::to_string(name), kv_bits),
      .commit = model.commit,
      .files = model.files,
      .bytes = model.bytes,
      .free_bytes = free_bytes(fs::absolute(hub::cache_dir())),
  };
}

std::string outlook(const hub::ModelName& name, const std::stop_token& stop) {
  constexpr std::chrono::seconds kPatience{5};
  constexpr std::uintmax_t kMaxBytes = std::uintmax_t{64} << 20;
  try {
    const hub::RemoteModel model =
        read(name, {.limit = kPatience, .max_bytes = kMaxBytes, .stop = stop});
    const load::Inspection found = judge(model, hub::to_string(name), std::nullopt);
    if (!found.model || !found.memory) {
      const bool is_known = found.model && !found.runnable && !found.reason.empty();
      return is_known ? fmt::format("It does not run here: {}.", found.reason) : "";
    }
    const std::string needed = size_text(found.memory->total());
    const std::string there = size_text(found.memory->usable_bytes);
    return found.memory->fits()
               ? fmt::format("It runs here, with {} of the memory of {}.", needed, there)
               : fmt::format(
                     "It needs {} of memory, which is more than the {} here.", needed, there
                 );
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) {
      throw;
    }
    return "";  // What fetches it will say what is wrong.
  }
}

std::string remote_text(const RemoteInspection& remote) {
  const std::string room =
      remote.free_bytes ? fmt::format(", {} are free here", size_text(*remote.free_bytes)) : "";
  return load::inspection_text(remote.inspection) + fmt::format(
                                                        "  {:<14}{} in {} file{}, not fetched{}\n",
                                                        "on the hub",
                                                        size_text(remote.bytes),
                                                        remote.files,
                                                        remote.files == 1 ? "" : "s",
                                                        room
                                                    );
}

std::string remote_json(const RemoteInspection& remote) {
  Json json = load::inspection_json(remote.inspection);
  json["hub"] = {
      {"commit", remote.commit},
      {"files", remote.files},
      {"bytes", remote.bytes},
      {"free_bytes", remote.free_bytes ? Json(*remote.free_bytes) : Json(nullptr)},
  };
  return dump_line(json);
}

}  // namespace saker::cli
