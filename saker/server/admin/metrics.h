// SPDX-License-Identifier: Apache-2.0
#pragma once

// The server's counts in the text format of Prometheus. It asks no engine, so that it answers
// at once under any load.

#include "saker/server/turns/served_model.h"

#include <string>

namespace saker::server {

// Saker's own names, and those of vLLM that routers and dashboards read.
std::string metrics_text(const ServedModel& model);

}  // namespace saker::server
