// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where `serve` sends its spans, as the variables of OpenTelemetry say (docs/operations.md).

#include "saker/server/request_spans.h"

namespace saker::cli {

// No queue unless OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. Throws
// kInvalidArgument, naming the variable, for values that make no sense.
server::Tracing tracing_of_environment();

}  // namespace saker::cli
