// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of `serve` about events of the prefix cache.

#include "saker/server/kv_events/publisher.h"

#include <CLI/CLI.hpp>

#include <memory>
#include <string>

namespace saker::cli {

struct KvEventArgs {
  std::string endpoint;  // Empty: no events.
  std::string topic;     // Empty: the default.
  std::string form = "map";
};

void add_kv_event_options(CLI::App& command, KvEventArgs& args);

// Null without an endpoint. Throws what ZmqPublisher throws.
std::shared_ptr<server::kv_events::Publisher> make_publisher(const KvEventArgs& args);

}  // namespace saker::cli
