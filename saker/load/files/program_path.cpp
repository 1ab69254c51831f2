// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/program_path.h"

#include <dlfcn.h>

#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>

#include <cstdint>
#endif

namespace saker::load {

std::filesystem::path program_path() {
  std::error_code ignored;
#ifdef __APPLE__
  char buffer[4096];
  std::uint32_t size = sizeof(buffer);
  return _NSGetExecutablePath(buffer, &size) == 0 ? std::filesystem::canonical(buffer, ignored)
                                                  : std::filesystem::path();
#else
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
#endif
}

std::filesystem::path library_path() {
  static const char here = 0;  // Somewhere in it.
  Dl_info found = {};
  std::error_code ignored;
  return dladdr(&here, &found) != 0 && found.dli_fname != nullptr
             ? std::filesystem::canonical(found.dli_fname, ignored)
             : std::filesystem::path();
}

}  // namespace saker::load
