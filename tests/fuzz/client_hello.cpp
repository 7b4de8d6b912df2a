// Any bytes, in any pieces, on the accept path: the handshake goes on, fails with a reason, or
// wants more; it never completes without a client, and what it has to say stays bounded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "proxy/tls/certificate.h"
#include "proxy/tls/client_side.h"
#include "proxy/tls/layer.h"

namespace {

using namespace sluice;

constexpr UtcTime kNow{std::chrono::seconds(1'900'000'000)};
constexpr std::size_t kOutboxLimit = 64 * 1024;

// One leaf for all runs: the bytes are what varies.
struct Fixture {
  Fixture() {
    auto authority = make_authority_certificate(*key, "fuzz", kNow);
    if (!authority) std::abort();
    auto made = make_leaf_certificate(**authority, *key, *key, "fuzz.test", kNow);
    if (!made) std::abort();
    leaf.certificate = std::move(*made);
    leaf.key = key.get();
  }

  KeyPtr key = make_p256_key();
  Leaf leaf{nullptr, nullptr, {}};
  ClientSide clients;
  TlsBuffers buffers;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fixture fixture;
  if (size < 1) return 0;
  const std::size_t step = data[0] == 0 ? size : data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  fixture.buffers.outbox.clear();
  TlsLayer layer(fixture.clients.accept(fixture.leaf, "fuzz.test", 443), fixture.buffers);
  while (!rest.empty()) {
    const auto piece = rest.substr(0, step);
    rest.remove_prefix(piece.size());
    layer.feed(piece);
    const Io io = layer.handshake();
    if (io == Io::moved || layer.established()) std::abort();
    if (fixture.buffers.outbox.size() > kOutboxLimit) std::abort();
    if (io == Io::failed && layer.error().empty()) std::abort();
    if (io == Io::failed) break;
  }
  return 0;
}
