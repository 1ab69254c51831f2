// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells for how long the engine's thread has been in its present piece of work, so that others can
// see that it hangs.

#include <atomic>
#include <chrono>

namespace saker::engine {

class PassClock {
 public:
  // A job or a step. They nest: a long job serves others between its own passes. When the inner one
  // ends, the outer one's time begins anew. Engine's thread only.
  class Pass {
   public:
    explicit Pass(PassClock& clock) : clock_(clock) {
      ++clock_.depth_;
      clock_.begin();
    }

    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    ~Pass() {
      if (--clock_.depth_ > 0) {
        clock_.begin();
      } else {
        clock_.begun_ = 0;
      }
    }

   private:
    PassClock& clock_;
  };

  // Seconds since the present piece of work began; 0 without one. Any thread.
  double seconds() const {
    const Clock::rep begun = begun_.load();
    return begun == 0 ? 0.0 : std::chrono::duration<double>(Clock::duration(now() - begun)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  static Clock::rep now() { return Clock::now().time_since_epoch().count(); }

  void begin() { begun_ = now(); }

  std::atomic<Clock::rep> begun_ = 0;
  int depth_ = 0;
};

}  // namespace saker::engine
