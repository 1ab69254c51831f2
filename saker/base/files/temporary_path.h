// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names for what is written before it gets its final name. They hold 64 random bits, so that nobody
// can make them beforehand, and processes don't meet in them, whichever containers they run in.

#include <filesystem>

namespace saker {

// ".<name>.<16 hexadecimal digits>.tmp" beside `path`; without its name where that is very long.
std::filesystem::path temporary_path(const std::filesystem::path& path);

// Makes a folder where nothing was, so that nothing in it is another's. Throws kNotFound, naming
// `shown`, when it cannot be made or something has that name.
void make_new_folder(const std::filesystem::path& path, const std::filesystem::path& shown);

}  // namespace saker
