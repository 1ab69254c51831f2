// SPDX-License-Identifier: Apache-2.0
// MLX's CPU allocator returns null without memory, and MLX's operations write to that address. This
// file replaces mlx::core::allocator::allocator() by one that throws std::bad_alloc.
//
// On ELF systems the program's definition of a symbol comes before a shared library's own, also for
// calls inside the library (System V gABI, "Shared Object Dependencies"). Other systems keep MLX's.
// docs/adr/0054-mlx-without-memory-throws.md
#include "saker/kernels/mx.h"

#if defined(__linux__)

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace mlx::core::allocator {
namespace {

Allocator& allocator_of_mlx() {
  using Function = Allocator& (*)();
  void* function = ::dlsym(RTLD_NEXT, "_ZN3mlx4core9allocator9allocatorEv");
  if (function == nullptr) {
    std::fputs("error: this program needs MLX as a shared library\n", stderr);
    std::abort();
  }
  return reinterpret_cast<Function>(function)();
}

class CheckedAllocator final : public Allocator {
 public:
  Buffer malloc(std::size_t size) override {
    const Buffer buffer = mlx_.malloc(size);
    if (size > 0 && buffer.ptr() == nullptr) {
      throw std::bad_alloc();
    }
    return buffer;
  }

  void free(Buffer buffer) override { mlx_.free(buffer); }

  std::size_t size(Buffer buffer) const override { return mlx_.size(buffer); }

  Buffer make_buffer(void* ptr, std::size_t size) override { return mlx_.make_buffer(ptr, size); }

  void release(Buffer buffer) override { mlx_.release(buffer); }

 private:
  Allocator& mlx_ = allocator_of_mlx();
};

}  // namespace

Allocator& allocator() {
  static CheckedAllocator& checked = *new CheckedAllocator;  // Arrays may outlive all else.
  return checked;
}

}  // namespace mlx::core::allocator

#endif
