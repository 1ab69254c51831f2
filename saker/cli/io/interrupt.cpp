// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <utility>

namespace saker::cli {
namespace {

bool is_ignored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t signals_of(WatchedSignals watched) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if ((signal == SIGINT || watched == WatchedSignals::kAllEnds) && !is_ignored(signal)) {
      sigaddset(&signals, signal);
    }
  }
  sigaddset(&signals, SIGUSR1);
  return signals;
}

}  // namespace

InterruptWatcher::InterruptWatcher(WatchedSignals watched) : signals_(signals_of(watched)) {
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  thread_ = std::thread([this] { watch(); });
}

InterruptWatcher::~InterruptWatcher() {
  pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
  pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr);
}

void InterruptWatcher::set_handler(std::function<void()> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

void InterruptWatcher::before_end(std::function<void()> last) {
  const std::lock_guard lock(mutex_);
  last_ = std::move(last);
}

void InterruptWatcher::end_program() {
  set_handler([this] {
    termios terminal{};
    const bool reads_keys =
        tcgetattr(STDIN_FILENO, &terminal) == 0 && (terminal.c_lflag & ICANON) == 0;
    if (!reads_keys) {
      end_by(SIGINT);
    }
  });
}

void InterruptWatcher::end_by(int signal) {
  if (last_) {
    last_();
  }
  // The signal is blocked in all threads; only this one unblocks it.
  ::signal(signal, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(signal);
}

void InterruptWatcher::watch() {
  int signal = 0;
  while (sigwait(&signals_, &signal) == 0 && signal != SIGUSR1) {
    const std::lock_guard lock(mutex_);
    if (signal != SIGINT && last_) {
      end_by(signal);
    }
    if (handler_) {
      handler_();
    }
  }
}

}  // namespace saker::cli
