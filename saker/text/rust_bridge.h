// SPDX-License-Identifier: Apache-2.0
#pragma once

// Takes ownership of results of the Rust library: bytes become strings, errors become saker::Error,
// objects live in unique_ptrs. For the .cpp files of this folder only.

#include "saker/base/error.h"

#include <saker_rs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace saker::text {

template <auto Free>
struct RustDeleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};

using RustTokenizer = std::unique_ptr<SakerRsTokenizer, RustDeleter<saker_rs_tokenizer_free>>;
using RustDetokenizer = std::unique_ptr<SakerRsDetokenizer, RustDeleter<saker_rs_detokenizer_free>>;
using RustTemplate = std::unique_ptr<SakerRsTemplate, RustDeleter<saker_rs_template_free>>;

inline const std::uint8_t* rust_data(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

// Takes ownership of the bytes.
std::string take_string(SakerRsBytes bytes);

// Throws Error{code, "what: error"}, on one line, unless `ok`; throws kCapacity if memory ran out.
// Takes ownership of the error's bytes.
void check_rust(bool ok, SakerRsBytes error, ErrorCode code, std::string_view what);

}  // namespace saker::text
