// SPDX-License-Identifier: Apache-2.0
#include "saker/server/kv_events/kv_event.h"

#include "saker/base/json/json.h"

#include <utility>

namespace saker::server::kv_events {
namespace {

// Consumers know rows that a model can use at once by this word, whatever holds them.
constexpr const char* kMedium = "GPU";

Json parent_json(const BlockChange& change) {
  return change.parent ? Json(*change.parent) : Json(nullptr);
}

Json map_event(const BlockChange& change) {
  switch (change.what) {
    case BlockChange::What::kStored: {
      Json event = {
          {"type", "BlockStored"},
          {"block_hashes", change.hashes},
          {"parent_block_hash", parent_json(change)},
          {"token_ids", change.tokens},
          {"block_size", kBlockTokens},
          {"lora_id", nullptr},
          {"medium", kMedium},
          {"lora_name", nullptr},
      };
      event["extra_keys"] = Json::array();
      for (std::size_t i = 0; i < change.hashes.size(); ++i) {
        event["extra_keys"].push_back(nullptr);
      }
      event["group_idx"] = 0;
      event["kv_cache_spec_kind"] = "full_attention";
      return event;
    }
    case BlockChange::What::kRemoved:
      return {{"type", "BlockRemoved"}, {"block_hashes", change.hashes}, {"medium", kMedium}};
    default:
      return {{"type", "AllBlocksCleared"}};
  }
}

Json array_event(const BlockChange& change) {
  switch (change.what) {
    case BlockChange::What::kStored:
      return Json::array(
          {"BlockStored",
           change.hashes,
           parent_json(change),
           change.tokens,
           kBlockTokens,
           nullptr,
           kMedium}
      );
    case BlockChange::What::kRemoved:
      return Json::array({"BlockRemoved", change.hashes, kMedium});
    default:
      return Json::array({"AllBlocksCleared"});
  }
}

}  // namespace

std::string event_batch(const std::vector<BlockChange>& changes, EventForm form, double seconds) {
  Json events = Json::array();
  for (const BlockChange& change : changes) {
    events.push_back(form == EventForm::kMap ? map_event(change) : array_event(change));
  }
  std::string bytes;
  Json::to_msgpack(Json::array({seconds, std::move(events), 0}), bytes);
  return bytes;
}

}  // namespace saker::server::kv_events
