// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/sleepers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace saker::server {
namespace {

bool is_loaded(const ModelCard& card) {
  return card.state.state != engine::PoolState::kUnloaded;
}

// Calls `done` once, when as many loads as it was made for have ended.
class Loads {
 public:
  Loads(std::size_t count, std::function<void(const std::exception_ptr& error)> done)
      : left_(count), done_(std::move(done)) {}

  void end(const std::exception_ptr& error) {
    std::unique_lock lock(mutex_);
    error_ = error_ == nullptr ? error : error_;
    if (--left_ == 0) {
      lock.unlock();
      done_(error_);
    }
  }

 private:
  std::mutex mutex_;
  std::size_t left_;
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr& error)> done_;
};

}  // namespace

void Sleepers::sleep(const std::optional<std::string>& model) {
  std::vector<ModelCard> cards = model ? std::vector{catalog_->find(*model)} : catalog_->cards();
  std::erase_if(cards, [](const ModelCard& card) { return !is_loaded(card); });
  const std::lock_guard lock(mutex_);
  for (const ModelCard& card : cards) {
    catalog_->unload(card.name());
    asleep_.insert(card.name());
  }
}

void Sleepers::wake(
    const std::optional<std::string>& model,
    const std::function<void(const std::exception_ptr& error)>& done
) {
  std::vector<std::string> names;
  {
    const std::string one = model ? catalog_->find(*model).name() : "";
    const std::lock_guard lock(mutex_);
    if (model) {
      names.push_back(one);
      asleep_.erase(one);
    } else {
      names.assign(asleep_.begin(), asleep_.end());
      asleep_.clear();
    }
  }
  if (names.empty()) {
    return done(nullptr);
  }
  const auto loads = std::make_shared<Loads>(names.size(), done);
  for (const std::string& name : names) {
    catalog_->ask(
        name,
        std::nullopt,
        [loads](const std::shared_ptr<const ServedModel>&, const std::exception_ptr& error) {
          loads->end(error);
        }
    );
  }
}

bool Sleepers::are_asleep(const std::optional<std::string>& model) const {
  if (model) {
    return !is_loaded(catalog_->find(*model));
  }
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(asleep_, [&](const std::string& name) {
    return !is_loaded(catalog_->find(name));
  });
}

}  // namespace saker::server
