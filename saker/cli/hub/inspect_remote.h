// SPDX-License-Identifier: Apache-2.0
#pragma once

// `saker inspect` of a model that is on the hub and not in the cache: its texts and the headers of
// its weights come by ranges (saker/hub/remote/remote_model.h), and the same code judges them as
// those of a model that is there.

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
  std::size_t files = 0;                     // That a pull takes.
  std::uintmax_t bytes = 0;                  // Of those.
  std::optional<std::uintmax_t> free_bytes;  // Where the cache lies.
};

// Throws as hub::read_remote_model and load::inspect do.
RemoteInspection inspect_remote(const hub::ModelName& name, std::optional<int> kv_bits);

// What somebody wants to know before a model is fetched, in a sentence: "It runs here ...", with
// the memory that it needs. Empty where the hub does not say it within five seconds, and for what
// is no model. Throws kCancelled once a stop is requested.
std::string outlook(const hub::ModelName& name, const std::stop_token& stop);

// As load::inspection_text and load::inspection_json have it, and what a pull would take.
std::string remote_text(const RemoteInspection& remote);
std::string remote_json(const RemoteInspection& remote);

}  // namespace saker::cli
