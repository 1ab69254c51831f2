// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model on the hub says of itself before anything is fetched: its configuration and other
// texts, and the beginnings of its weights, read by ranges. Texts are compared with the digests of
// the hub's list. Beginnings cannot be: they are for judging, never for running. On the caller's
// thread; in libsaker_hub.

#include "saker/hub/model_name.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace saker::hub {

struct RemotePart {
  std::string path;         // A plain relative path, is_file_path.
  std::uintmax_t size = 0;  // Of the file.
  std::string bytes;        // A text: all of them; weights: those that were asked for.
};

struct RemoteModel {
  std::string commit;
  std::vector<RemotePart> parts;
  std::string gguf;          // The path of the GGUF model; empty: a folder.
  std::size_t files = 0;     // That a pull takes.
  std::uintmax_t bytes = 0;  // Of those.
};

// How many bytes of a weight file's beginning are wanted, given those that are there; no more than
// these: enough. What it throws ends the reading.
using WantedBytes = std::function<std::uintmax_t(const RemotePart& part)>;

struct RemoteModelOptions {
  // Of all that is read.
  std::chrono::milliseconds limit{60'000};
  std::uintmax_t max_bytes = std::uintmax_t{512} << 20;
  std::function<void(const std::string& failure)> retrying = {};  // As PullOptions::retrying.
  std::stop_token stop = {};                                      // Ends it with kCancelled.
};

// The files that a pull of the name would take, without patterns. Reads the environment as pull
// does. Throws as pull does, and kCapacity for what needs more than the limits.
RemoteModel read_remote_model(
    const ModelName& name, const WantedBytes& wanted, const RemoteModelOptions& options = {}
);

}  // namespace saker::hub
