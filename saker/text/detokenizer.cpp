// SPDX-License-Identifier: Apache-2.0
#include "saker/text/detokenizer.h"

#include "saker/text/rust_bridge.h"

namespace saker::text {

void Detokenizer::Free::operator()(SakerRsDetokenizer* rust) const {
  saker_rs_detokenizer_free(rust);
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, DecodeOptions options) {
  SakerRsDetokenizer* rust = nullptr;
  SakerRsBytes error{};
  const bool ok =
      saker_rs_detokenizer_new(&tokenizer.rust(), options.skip_special_tokens, &rust, &error);
  check_rust(ok, error, ErrorCode::kInternal, "detokenizer");
  rust_.reset(rust);
}

Detokenizer::Detokenizer(Detokenizer&&) noexcept = default;
Detokenizer& Detokenizer::operator=(Detokenizer&&) noexcept = default;
Detokenizer::~Detokenizer() = default;

std::string Detokenizer::add(std::int32_t id) {
  require(id >= 0, ErrorCode::kInvalidArgument, "token id {} is negative", id);
  SakerRsBytes text{};
  SakerRsBytes error{};
  const bool ok =
      saker_rs_detokenizer_add(rust_.get(), static_cast<std::uint32_t>(id), &text, &error);
  check_rust(ok, error, ErrorCode::kCorruptData, "the tokens cannot be decoded");
  return take_string(text);
}

std::string Detokenizer::finish() {
  SakerRsBytes text{};
  SakerRsBytes error{};
  const bool ok = saker_rs_detokenizer_finish(rust_.get(), &text, &error);
  check_rust(ok, error, ErrorCode::kCorruptData, "the tokens cannot be decoded");
  return take_string(text);
}

}  // namespace saker::text
