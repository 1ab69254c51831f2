// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which traces get spans, as OpenTelemetry's samplers decide.

#include <optional>
#include <string_view>

namespace saker::server::spans {

struct Sampler {
  double ratio = 1.0;          // For traces that begin here.
  bool follows_parent = true;  // A client's traces get spans if it says so.

  // `parent`: whether the client's span is sampled; none: there is none. `trace` has 32 hexadecimal
  // digits.
  bool samples(std::optional<bool> parent, std::string_view trace) const;
};

// The sampler of OTEL_TRACES_SAMPLER, such as "parentbased_traceidratio", with the value of
// OTEL_TRACES_SAMPLER_ARG. An empty name means "parentbased_always_on", an empty argument 1. Throws
// kInvalidArgument.
Sampler parse_sampler(std::string_view name, std::string_view argument);

}  // namespace saker::server::spans
