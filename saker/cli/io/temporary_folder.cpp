// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/temporary_folder.h"

#include "saker/base/files/temporary_path.h"

#include <system_error>

namespace saker::cli {

TemporaryFolder::TemporaryFolder()
    : path_(temporary_path(std::filesystem::temp_directory_path() / "saker")) {
  make_new_folder(path_, path_);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
}

TemporaryFolder::~TemporaryFolder() {
  remove();
}

void TemporaryFolder::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace saker::cli
