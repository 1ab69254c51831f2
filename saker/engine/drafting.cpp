// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/drafting.h"

#include "saker/generate/drafters/assistant.h"
#include "saker/generate/drafters/dflash.h"
#include "saker/generate/drafters/draft_model.h"
#include "saker/generate/drafters/eagle3.h"
#include "saker/generate/drafters/mtp.h"

#include <memory>

namespace saker::engine {

generate::Speculation speculation_of(const Drafting& drafting, const load::LoadedDraft& draft) {
  generate::Speculation result{.depth = drafting.depth, .check = drafting.check};
  if (drafting.acceptance == Acceptance::kRejection) {
    result.acceptance = generate::Acceptance::kRejection;
  }
  switch (drafting.method) {
    case Speculate::kDefault:
      result.drafter = drafting.prediction            ? generate::DrafterKind::kPromptLookup
                       : draft.dflash                 ? generate::DrafterKind::kDflash
                       : draft.eagle3                 ? generate::DrafterKind::kEagle3
                       : draft.model                  ? generate::DrafterKind::kDraftModel
                       : draft.mtp || draft.assistant ? generate::DrafterKind::kMtp
                                                      : generate::DrafterKind::kNone;
      break;
    case Speculate::kNone:
      break;
    case Speculate::kPromptLookup:
      result.drafter = generate::DrafterKind::kPromptLookup;
      break;
    case Speculate::kDraft:
      result.drafter = generate::DrafterKind::kDraftModel;
      break;
    case Speculate::kMtp:
      result.drafter = generate::DrafterKind::kMtp;
      break;
    case Speculate::kDflash:
      result.drafter = generate::DrafterKind::kDflash;
      break;
    case Speculate::kEagle3:
      result.drafter = generate::DrafterKind::kEagle3;
      break;
  }
  return result;
}

generate::Drafters make_drafters(
    const load::LoadedDraft& draft, const models::Model& model, int prefill_step
) {
  generate::Drafters drafters;
  if (draft.model) {
    drafters[generate::DrafterKind::kDraftModel] =
        std::make_unique<generate::DraftModel>(*draft.model, prefill_step);
  }
  if (draft.assistant) {
    drafters[generate::DrafterKind::kMtp] =
        std::make_unique<generate::Assistant>(*draft.assistant, model);
  } else if (draft.mtp) {
    drafters[generate::DrafterKind::kMtp] = std::make_unique<generate::Mtp>(*draft.mtp, model);
  }
  if (draft.dflash) {
    drafters[generate::DrafterKind::kDflash] =
        std::make_unique<generate::Dflash>(*draft.dflash, model);
  }
  if (draft.eagle3) {
    drafters[generate::DrafterKind::kEagle3] =
        std::make_unique<generate::Eagle3>(*draft.eagle3, model);
  }
  return drafters;
}

}  // namespace saker::engine
