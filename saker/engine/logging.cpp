// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/logging.h"

#include "saker/base/characters/printable.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/ranges.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace saker {
namespace {

constexpr const char* kLoggerName = "saker";
constexpr const char* kVariable = "SAKER_LOG";

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

using ColorSink = spdlog::sinks::stderr_color_sink_mt;

// Names of files, tensors and models come from outside, so every message is made printable.
class PrintableSink final : public ColorSink {
 public:
  using ColorSink::ColorSink;

  void log(const spdlog::details::log_msg& message) override {
    const std::string_view payload(message.payload.data(), message.payload.size());
    const std::string text =
        message.level < spdlog::level::warn ? printable_lines(payload) : printable_line(payload);
    spdlog::details::log_msg printable = message;
    printable.payload = text;
    ColorSink::log(printable);
  }
};

void set_level(spdlog::level::level_enum level) {
  spdlog::set_level(level);
  // Times are shown only at levels for debugging.
  spdlog::set_pattern(level < spdlog::level::warn ? "%H:%M:%S.%e %^%l:%$ %v" : "%^%l:%$ %v");
}

}  // namespace

void log_to_stderr() {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      kLoggerName,
      std::make_shared<PrintableSink>(
          variable("NO_COLOR").empty() ? spdlog::color_mode::automatic : spdlog::color_mode::never
      )
  ));
  set_level(spdlog::level::warn);
  const std::string_view wanted = variable(kVariable);
  if (wanted.empty()) {
    return;
  }
  try {
    set_log_level(wanted);
  } catch (const Error& error) {
    spdlog::warn("{}: {}", kVariable, error.what());
  }
}

void set_log_level(std::string_view name) {
  const auto* const found = std::ranges::find(kLogLevels, name);
  require(
      found != kLogLevels.end(),
      ErrorCode::kInvalidArgument,
      "got {}, expected one of {}",
      quote(name),
      fmt::join(kLogLevels, ", ")
  );
  set_level(spdlog::level::from_str(std::string(name)));
}

}  // namespace saker
