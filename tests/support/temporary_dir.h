// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder for one test, removed with everything in it when the object goes.

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is POSIX's.

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace saker::testing {

class TemporaryDir {
 public:
  TemporaryDir() {
    std::string name = (std::filesystem::temp_directory_path() / "saker-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("no temporary folder: " + name);
    }
    path_ = name;
  }

  TemporaryDir(const TemporaryDir&) = delete;
  TemporaryDir& operator=(const TemporaryDir&) = delete;

  ~TemporaryDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  // Writes a file, and the folders above it, and returns its path.
  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    stream.close();
    if (!stream) {
      throw std::runtime_error("cannot write " + file.string());
    }
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace saker::testing
