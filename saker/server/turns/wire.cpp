// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/wire.h"

#include "saker/base/json/json_numbers.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>
#include <random>

namespace saker::server {

std::string sse(const Json& data) {
  return fmt::format("data: {}\n\n", write_json(data));
}

std::string sse(std::string_view event, const Json& data) {
  return fmt::format("event: {}\ndata: {}\n\n", event, write_json(data));
}

std::string json_line(const Json& data) {
  return write_json(data) + "\n";
}

http::Response sse_head() {
  return {
      .content_type = "text/event-stream",
      .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}
  };
}

http::Response json_response(const Json& body, int status) {
  return {.status = status, .body = write_json(body)};
}

std::string new_id(std::string_view prefix) {
  std::random_device random;
  return fmt::format("{}{:08x}{:08x}{:08x}", prefix, random(), random(), random());
}

std::uint64_t new_seed() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) >> 1;  // Fits in JSON's signed integers.
}

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch()
  )
      .count();
}

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  constexpr std::int64_t kSecond = 1'000'000'000;
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%S}.{:09}Z",
      fmt::gmtime(static_cast<std::time_t>(nanoseconds / kSecond)),
      nanoseconds % kSecond
  );
}

double finite_logprob(double logprob) {
  constexpr double kLowest = -9999.0;
  return std::isfinite(logprob) ? logprob : kLowest;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) {
      return k < bytes.size() ? static_cast<unsigned char>(bytes[k]) : 0U;
    };
    const unsigned group = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    text += kDigits[group >> 18 & 63];
    text += kDigits[group >> 12 & 63];
    text += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    text += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
  return text;
}

}  // namespace saker::server
