// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that lets one call of the program's main function fail, as a machine
// does that is short of memory or whose disk is full. tests/e2e/faults_test.py drives it.
//
//   SAKER_FAULT_CALL   allocate, open, write, sync, rename, map or folder: which calls are meant
//   SAKER_FAULT_AT     the number of the one that fails, from 1; of allocations the place (below)
//   SAKER_FAULT_ERROR  its errno, a number
//   SAKER_FAULT_DEPTH  how many callers tell places of allocations apart
//   SAKER_FAULT_LIST   a file that gets, at the program's end, the number of such calls; of
//                      allocations one line for each place
//
// A place of allocations is a hash of who called whom, so that loops are tried once. Addresses must
// be the same in all runs (setarch -R). glibc alone.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

// The callers that tell places apart.
constexpr int kMaxDepth = 64;
constexpr int kOwn = 3;  // Functions of this library.
constexpr std::size_t kPlaces = std::size_t{1} << 18;

struct Plan {
  std::string_view call;
  std::uint64_t at = 0;
  int error = 0;
  int depth = 8;
  const char* list = nullptr;
};

Plan plan;
std::atomic<bool> is_active{false};  // Between the begin and the end of main.
std::atomic<std::uint64_t> calls{0};
std::array<std::atomic<std::uint64_t>, kPlaces> places;
thread_local bool is_inside = false;  // Of this library.

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// Where this allocation is made; never 0.
std::uint64_t place() {
  std::array<void*, kMaxDepth> callers{};
  const int count = ::backtrace(callers.data(), plan.depth + kOwn);
  std::uint64_t hash = 1469598103934665603ULL;
  for (int i = kOwn; i < count; ++i) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(callers.at(i))) * 1099511628211ULL;
  }
  return hash == 0 ? 1 : hash;
}

// Whether nobody has come by there before.
bool is_first(std::uint64_t hash) {
  for (std::size_t i = 0; i < kPlaces; ++i) {
    std::atomic<std::uint64_t>& slot = places.at((hash + i) % kPlaces);
    std::uint64_t empty = 0;
    if (slot.compare_exchange_strong(empty, hash)) {
      return true;
    }
    if (empty == hash) {
      return false;
    }
  }
  return false;
}

bool allocation_fails() {
  if (!is_active || is_inside || plan.call != "allocate") {
    return false;
  }
  is_inside = true;
  const std::uint64_t here = place();
  const bool fails = is_first(here) && here == plan.at;
  is_inside = false;
  errno = fails ? ENOMEM : errno;
  return fails;
}

bool call_fails(std::string_view call) {
  if (!is_active || is_inside || call != plan.call || ++calls != plan.at) {
    return false;
  }
  errno = plan.error;
  return true;
}

void list_calls() {
  is_active = false;
  if (plan.list == nullptr) {
    return;
  }
  std::FILE* file = std::fopen(plan.list, "w");
  if (plan.call != "allocate") {
    std::fprintf(file, "%llu\n", static_cast<unsigned long long>(calls.load()));
  }
  for (const auto& slot : places) {
    if (slot != 0) {
      std::fprintf(file, "%llu\n", static_cast<unsigned long long>(slot.load()));
    }
  }
  std::fclose(file);
}

const char* text_of(const char* variable, const char* otherwise) {
  const char* value = std::getenv(variable);
  return value == nullptr ? otherwise : value;
}

using Main = int (*)(int, char**, char**);
Main program_main = nullptr;

int watched_main(int count, char** arguments, char** environment) {
  plan.call = text_of("SAKER_FAULT_CALL", "");
  plan.at = std::strtoull(text_of("SAKER_FAULT_AT", "0"), nullptr, 10);
  plan.error = std::atoi(text_of("SAKER_FAULT_ERROR", "12"));
  plan.depth = std::min(std::atoi(text_of("SAKER_FAULT_DEPTH", "8")), kMaxDepth - kOwn);
  plan.list = text_of("SAKER_FAULT_LIST", nullptr);
  std::array<void*, 2> warm{};
  ::backtrace(warm.data(), warm.size());  // It loads a library when it is first called.
  is_active = true;
  const int code = program_main(count, arguments, environment);
  list_calls();
  return code;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier,cert-dcl51-cpp)
extern "C" {

int __libc_start_main(
    Main main,
    int count,
    char** arguments,
    void (*begin)(),
    void (*end)(),
    void (*loader_end)(),
    void* stack
) {
  program_main = main;
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  return next<Start>("__libc_start_main")(
      watched_main, count, arguments, begin, end, loader_end, stack
  );
}

void* malloc(std::size_t size) {
  return allocation_fails() ? nullptr : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  return allocation_fails() ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
  return allocation_fails() ? nullptr : __libc_realloc(old, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return allocation_fails() ? nullptr : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
  void* made = allocation_fails() ? nullptr : __libc_memalign(alignment, size);
  if (made == nullptr) {
    return ENOMEM;
  }
  *result = made;
  return 0;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, int));
  va_end(rest);
  using Open = int (*)(const char*, int, ...);
  return call_fails("open") ? -1 : next<Open>("open")(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, int));
  va_end(rest);
  return open(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = static_cast<mode_t>(va_arg(rest, int));
  va_end(rest);
  using Open = int (*)(int, const char*, int, ...);
  return call_fails("open") ? -1 : next<Open>("openat")(folder, path, flags, mode);
}

std::FILE* fopen(const char* path, const char* mode) {
  using Open = std::FILE* (*)(const char*, const char*);
  return call_fails("open") ? nullptr : next<Open>("fopen")(path, mode);
}

std::FILE* fopen64(const char* path, const char* mode) {
  return fopen(path, mode);
}

// Of standard error none fails: there would be nobody to tell.
ssize_t write(int file, const void* bytes, std::size_t size) {
  using Write = ssize_t (*)(int, const void*, std::size_t);
  return file != STDERR_FILENO && call_fails("write") ? -1
                                                      : next<Write>("write")(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t at) {
  using Write = ssize_t (*)(int, const void*, std::size_t, off_t);
  return call_fails("write") ? -1 : next<Write>("pwrite")(file, bytes, size, at);
}

ssize_t pwrite64(int file, const void* bytes, std::size_t size, off_t at) {
  return pwrite(file, bytes, size, at);
}

std::size_t fwrite(const void* bytes, std::size_t size, std::size_t count, std::FILE* file) {
  using Write = std::size_t (*)(const void*, std::size_t, std::size_t, std::FILE*);
  return file != stderr && call_fails("write") ? 0
                                               : next<Write>("fwrite")(bytes, size, count, file);
}

ssize_t writev(int file, const iovec* parts, int count) {
  using Write = ssize_t (*)(int, const iovec*, int);
  return file != STDERR_FILENO && call_fails("write") ? -1
                                                      : next<Write>("writev")(file, parts, count);
}

ssize_t sendfile(int to, int from, off_t* at, std::size_t size) {
  using Send = ssize_t (*)(int, int, off_t*, std::size_t);
  return call_fails("write") ? -1 : next<Send>("sendfile")(to, from, at, size);
}

int fsync(int file) {
  return call_fails("sync") ? -1 : next<int (*)(int)>("fsync")(file);
}

int fdatasync(int file) {
  return call_fails("sync") ? -1 : next<int (*)(int)>("fdatasync")(file);
}

int rename(const char* from, const char* to) {
  using Rename = int (*)(const char*, const char*);
  return call_fails("rename") ? -1 : next<Rename>("rename")(from, to);
}

int mkdir(const char* path, mode_t mode) {
  using Make = int (*)(const char*, mode_t);
  return call_fails("folder") ? -1 : next<Make>("mkdir")(path, mode);
}

void* mmap(void* where, std::size_t size, int protection, int flags, int file, off_t offset) {
  using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
  return call_fails("map") ? MAP_FAILED
                           : next<Map>("mmap")(where, size, protection, flags, file, offset);
}

void* mmap64(void* where, std::size_t size, int protection, int flags, int file, off_t offset) {
  return mmap(where, size, protection, flags, file, offset);
}
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier,cert-dcl51-cpp)
