// SPDX-License-Identifier: Apache-2.0
#pragma once

// DRY ("don't repeat yourself", P. E. Weidmann,
// https://github.com/oobabooga/text-generation-webui/pull/5677). A token is penalised if it
// followed an earlier copy of the context's last n tokens. Its logit loses dry_multiplier *
// dry_base^(n - dry_allowed_length); n is the longest such repetition and at least
// dry_allowed_length. Repetitions end at breakers, which are never penalised. Linear in the
// context.

#include "saker/sample/options.h"

#include <cstdint>
#include <span>

namespace saker::sample {

// `breakers` is sorted; ids beyond the row are skipped.
void penalise_repeats(
    const SamplingOptions& options,
    std::span<const std::int32_t> breakers,
    std::span<const std::int32_t> context,
    std::span<float> logits
);

}  // namespace saker::sample
