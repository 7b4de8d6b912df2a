// Ownership of what C libraries hand out: the size of one pointer, freed by the library's own
// function.
#pragma once

#include <memory>

namespace sluice {

template <auto Free>
struct FreeWith {
  void operator()(auto* p) const noexcept { Free(p); }
};
template <class T, auto Free>
using Owned = std::unique_ptr<T, FreeWith<Free>>;

}  // namespace sluice
