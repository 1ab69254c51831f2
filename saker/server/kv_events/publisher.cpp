// SPDX-License-Identifier: Apache-2.0
#include "saker/server/kv_events/publisher.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <exception>
#include <utility>

namespace saker::server::kv_events {
namespace {

std::string with_name(std::string topic, const std::string& model) {
  constexpr std::string_view kPlace = "{model}";
  if (const std::size_t at = topic.find(kPlace); at != std::string::npos) {
    topic.replace(at, kPlace.size(), model);
  }
  return topic;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

Publisher::Publisher(PublisherOptions options)
    : options_(std::move(options)), thread_([this] { run(); }) {}

Publisher::~Publisher() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Publisher::add(const std::string& model, BlockChange change) {
  {
    const std::lock_guard lock(mutex_);
    std::vector<BlockChange>& changes = waiting_[model];
    waiting_size_ += change.tokens.size() + change.hashes.size() + 1;
    if (waiting_size_ > options_.most_waiting) {
      // Consumers that miss events would believe in blocks that are gone.
      changes.clear();
      change = {};
      waiting_size_ = 0;
    }
    changes.push_back(std::move(change));
  }
  changed_.notify_one();
}

void Publisher::run() {
  while (true) {
    Waiting taken;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
      taken = std::exchange(waiting_, {});
      waiting_size_ = 0;
    }
    if (taken.empty()) {
      return;
    }
    for (const auto& [model, changes] : taken) {
      try {
        const std::string batch = event_batch(changes, options_.form, now());
        options_.send(with_name(options_.topic, model), numbers_[model]++, batch);
      } catch (const std::exception& error) {  // No memory for it.
        spdlog::warn("events of the prefix cache are lost: {}", error.what());
      }
    }
  }
}

}  // namespace saker::server::kv_events
