// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/launch/child.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sstream>

extern char** environ;

namespace saker::cli {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

// This program's environment with the changes.
std::vector<std::string> changed(const std::vector<std::pair<std::string, std::string>>& environment
) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto is_other = [&](const auto& change) { return !text.starts_with(change.first + "="); };
    if (std::ranges::all_of(environment, is_other)) {
      result.push_back(text);
    }
  }
  for (const auto& [name, value] : environment) {
    if (!value.empty()) {
      result.push_back(fmt::format("{}={}", name, value));
    }
  }
  return result;
}

// Between fork and exec: only what signal handlers may do.
void leave_terminal(int log) {
  setsid();
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  if (log >= 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
  }
}

pid_t start(
    const std::filesystem::path& program,
    const std::vector<std::string>& args,
    const ChildOptions& options
) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), args.begin(), args.end());
  std::vector<std::string> environment = changed(options.environment);
  const auto word_pointers = pointers(words);
  const auto environment_pointers = pointers(environment);
  constexpr mode_t kOwner = 0600;
  const int log =
      options.log.empty()
          ? -1
          : open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kOwner);
  const pid_t pid = fork();
  if (pid == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
      ::signal(number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (options.kind == ChildKind::kBackground) {
      leave_terminal(log);
    }
    execve(words.front().c_str(), word_pointers.data(), environment_pointers.data());
    constexpr int kCanNotRun = 126;
    _exit(kCanNotRun);
  }
  const int reason = errno;
  if (log >= 0) {
    close(log);
  }
  require(
      pid > 0,
      ErrorCode::kNotFound,
      "{} does not start: {}",
      quote_path(program),
      system_reason(reason)
  );
  return pid;
}

int code_of(int status) {
  constexpr int kSignals = 128;
  return WIFSIGNALED(status) ? kSignals + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

std::filesystem::path find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path found = std::filesystem::path(folder) / name;
    std::error_code ignored;
    if (!folder.empty() && std::filesystem::is_regular_file(found, ignored) &&
        access(found.c_str(), X_OK) == 0) {
      return found;
    }
  }
  return {};
}

Child::Child(
    const std::filesystem::path& program,
    const std::vector<std::string>& args,
    const ChildOptions& options
)
    : pid_(start(program, args, options)) {}

Child::~Child() {
  if (!ended()) {
    signal(SIGTERM);
    wait();
  }
}

std::optional<int> Child::ended() {
  int status = 0;
  if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_) {
    code_ = code_of(status);
  }
  return code_;
}

int Child::wait() {
  int status = 0;
  while (!code_) {
    const pid_t got = waitpid(pid_, &status, 0);
    if (got == pid_) {
      code_ = code_of(status);
    } else if (errno != EINTR) {
      code_ = 1;
    }
  }
  return *code_;
}

void Child::signal(int number) const {
  kill(pid_, number);
}

}  // namespace saker::cli
