// SPDX-License-Identifier: Apache-2.0
#include "saker/text/constraint.h"

#include "saker/base/error.h"
#include "saker/text/rust_bridge.h"

#include <saker_rs_constraint.h>

#include <vector>

namespace saker::text {

TokenTrie::TokenTrie(const Tokenizer& tokenizer, std::span<const std::int32_t> ends) {
  const std::vector<std::uint32_t> ids(ends.begin(), ends.end());
  SakerRsTokenTrie* rust = nullptr;
  SakerRsBytes error{};
  const bool ok = saker_rs_token_trie_new(&tokenizer.rust(), ids.data(), ids.size(), &rust, &error);
  check_rust(ok, error, ErrorCode::kUnsupported, "constraints over this vocabulary");
  rust_ = std::shared_ptr<const SakerRsTokenTrie>(rust, [](const SakerRsTokenTrie* owned) {
    saker_rs_token_trie_free(const_cast<SakerRsTokenTrie*>(owned));
  });
}

void Constraint::Free::operator()(SakerRsConstraint* rust) const {
  saker_rs_constraint_free(rust);
}

Constraint::Constraint(
    const TokenTrie& trie, ConstraintKind kind, std::string_view text, std::string_view what
)
    : what_(what) {
  SakerRsConstraint* rust = nullptr;
  SakerRsBytes error{};
  const bool ok = saker_rs_constraint_new(
      &trie.rust(), static_cast<std::uint32_t>(kind), rust_data(text), text.size(), &rust, &error
  );
  check_rust(ok, error, ErrorCode::kInvalidArgument, what_);
  rust_.reset(rust);
}

bool Constraint::fill(std::span<std::uint32_t> bits) {
  bool may_end = false;
  SakerRsBytes error{};
  const bool ok = saker_rs_constraint_mask(rust_.get(), bits.data(), bits.size(), &may_end, &error);
  check_rust(ok, error, ErrorCode::kInvalidArgument, what_);
  return may_end;
}

std::string Constraint::forced_bytes() {
  SakerRsBytes bytes{};
  SakerRsBytes error{};
  check_rust(
      saker_rs_constraint_forced(rust_.get(), &bytes, &error),
      error,
      ErrorCode::kInvalidArgument,
      what_
  );
  return take_string(bytes);
}

bool Constraint::accept(std::int32_t token) {
  bool complete = false;
  SakerRsBytes error{};
  const bool ok =
      saker_rs_constraint_accept(rust_.get(), static_cast<std::uint32_t>(token), &complete, &error);
  check_rust(ok, error, ErrorCode::kInvalidArgument, what_);
  return !complete;
}

}  // namespace saker::text
