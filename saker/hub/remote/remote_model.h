// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a model's description on the hub before it is fetched: its configuration and other texts,
// and the beginnings of its weights, by range requests. Texts are verified by the digests of the
// hub's list. Beginnings cannot be verified: use them to judge a model, never to run it. Runs on
// the caller's thread; in libsaker_hub.

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
  std::uintmax_t size = 0;  // Bytes of the whole file.
  std::string bytes;        // The whole text, or the requested beginning of weights.
};

struct RemoteModel {
  std::string commit;
  std::vector<RemotePart> parts;
  std::string gguf;          // The path of the GGUF model; empty: a folder.
  std::size_t files = 0;     // Number of files that a pull takes.
  std::uintmax_t bytes = 0;  // Their bytes.
};

// How many bytes of a weight file's beginning are wanted, given those that are there. No more than
// these means enough. An exception ends the reading.
using WantedBytes = std::function<std::uintmax_t(const RemotePart& part)>;

struct RemoteModelOptions {
  // Limits of time and bytes for everything that is read.
  std::chrono::milliseconds limit{60'000};
  std::uintmax_t max_bytes = std::uintmax_t{512} << 20;
  std::function<void(const std::string& failure)> retrying = {};  // As PullOptions::retrying.
  std::stop_token stop = {};                                      // Ends it with kCancelled.
};

// Covers the files that a pull of the name would take, without patterns. Reads the environment as
// pull does. Throws as pull does, and kCapacity if a limit is exceeded.
RemoteModel read_remote_model(
    const ModelName& name, const WantedBytes& wanted, const RemoteModelOptions& options = {}
);

}  // namespace saker::hub
