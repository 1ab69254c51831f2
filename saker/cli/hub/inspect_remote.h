// SPDX-License-Identifier: Apache-2.0
#pragma once

// `saker inspect` of a model that is on the hub and not in the cache. Its texts and the headers of
// its weights are read by ranges (saker/hub/remote/remote_model.h) and judged like local ones.

#include "saker/hub/model_name.h"
#include "saker/load/inspect/inspect.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace saker::cli {

struct RemoteInspection {
  load::Inspection inspection;  // Its path is the model's name.
  std::string commit;
  std::size_t files = 0;                     // Files of a pull.
  std::uintmax_t bytes = 0;                  // Bytes of these files.
  std::optional<std::uintmax_t> free_bytes;  // On the cache's file system.
};

// Throws as hub::read_remote_model and load::inspect do.
RemoteInspection inspect_remote(const hub::ModelName& name, std::optional<int> kv_bits);

// A sentence for the question before a pull: "It runs here ...", with the memory that the model
// needs. Empty if the hub does not answer within five seconds, and for a repository that holds no
// model. Throws kCancelled once a stop is requested.
std::string outlook(const hub::ModelName& name, const std::stop_token& stop);

// The output of load::inspection_text and load::inspection_json, and the size of a pull.
std::string remote_text(const RemoteInspection& remote);
std::string remote_json(const RemoteInspection& remote);

}  // namespace saker::cli
