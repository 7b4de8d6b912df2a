// How a buffer that served one message rests until the next: emptied, and given back when it has
// grown beyond what most messages need. Connections are many and mostly idle.
#pragma once

#include <cstddef>

namespace sluice {

constexpr std::size_t kRestingBytes = 2048;

template <class Buffer>
void shed_room(Buffer& buffer) {
  if (buffer.capacity() * sizeof(typename Buffer::value_type) > kRestingBytes) {
    Buffer().swap(buffer);
  } else {
    buffer.clear();
  }
}

}  // namespace sluice
