// SPDX-License-Identifier: Apache-2.0
// Versions, statuses, the log, and results as bytes and numbers.
#include "saker/capi/status.h"
#include "saker/engine/logging.h"

#include <string_view>

namespace capi = saker::capi;

uint32_t saker_api_version(void) {
  return SAKER_API_VERSION;
}

const char* saker_version(void) {
  return SAKER_VERSION;
}

const char* saker_status_name(SakerStatus status) {
  switch (status) {
    case SAKER_OK:
      return "ok";
    case SAKER_INVALID_ARGUMENT:
      return "invalid_argument";
    case SAKER_NOT_FOUND:
      return "not_found";
    case SAKER_UNSUPPORTED:
      return "unsupported";
    case SAKER_CORRUPT_DATA:
      return "corrupt_data";
    case SAKER_CAPACITY:
      return "capacity";
    case SAKER_CANCELLED:
      return "cancelled";
    case SAKER_INTERNAL:
      return "internal";
    case SAKER_TIMEOUT:
      return "timeout";
    case SAKER_END:
      return "end";
  }
  return "unknown";
}

SakerStatus saker_set_log_level(const char* level, SakerText** message) {
  return capi::guarded(message, [&] {
    capi::log_once();
    saker::set_log_level(capi::text_or_empty(level, "level"));
    return SAKER_OK;
  });
}

const char* saker_text_data(const SakerText* text) {
  return text == nullptr ? "" : text->bytes.c_str();
}

size_t saker_text_size(const SakerText* text) {
  return text == nullptr ? 0 : text->bytes.size();
}

void saker_text_free(SakerText* text) {
  delete text;
}

const int32_t* saker_tokens_data(const SakerTokens* tokens) {
  return tokens == nullptr ? nullptr : tokens->ids.data();
}

size_t saker_tokens_count(const SakerTokens* tokens) {
  return tokens == nullptr ? 0 : tokens->ids.size();
}

void saker_tokens_free(SakerTokens* tokens) {
  delete tokens;
}
