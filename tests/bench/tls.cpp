// What interception costs beside the bytes: a leaf certificate from the mint, and how often a
// session is resumed and nothing minted. Our two sides of the proxy are joined in memory, so each
// handshake shows both: the one towards clients, which keeps tickets with them, and the one towards
// origins, which keeps sessions. Prints one line each and fails when one is beyond its bound
// (issue 5). Times are CPU time of this process, so that a busy machine disturbs them little.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "proxy/clock.h"
#include "proxy/tls/client_side.h"
#include "proxy/tls/layer.h"
#include "proxy/tls/mint.h"
#include "proxy/tls/origin_side.h"

namespace {

using namespace sluice;

constexpr int kLeaves = 1000;
constexpr int kHandshakes = 1000;
constexpr double kMostLeafMs = 1.0;
constexpr double kLeastResumed = 0.99;

double cpu_ms() { return static_cast<double>(std::clock()) * 1e3 / CLOCKS_PER_SEC; }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

LeafRef fetch(Mint& mint, const std::string& host) {
  if (LeafRef leaf = mint.find(host)) return leaf;
  std::promise<Result<LeafRef>> made;
  auto handle = mint.want(
      host, [](const std::function<void()>& job) { job(); },
      [&made](Result<LeafRef> leaf) { made.set_value(std::move(leaf)); });
  const auto leaf = made.get_future().get();
  if (!leaf) {
    std::fprintf(stderr, "no certificate: %s\n", leaf.error().c_str());
    abort();
  }
  return *leaf;
}

struct End {
  explicit End(SslPtr ssl) : layer(std::move(ssl), buffers) {}
  TlsBuffers buffers;
  TlsLayer layer;
};

void carry(End& from, End& to) {
  const std::string wire = std::exchange(from.buffers.outbox, {});
  if (wire.empty()) return;
  to.layer.feed(wire);
  if (!to.layer.established()) {
    to.layer.handshake();
  } else {
    char text[64];
    std::size_t count = 0;
    to.layer.read(text, sizeof text, count);
  }
}

// True: both sides say that it was resumed.
bool shake_hands(End& client, End& server) {
  client.layer.handshake();
  for (int turn = 0; turn < 4; ++turn) {
    carry(client, server);
    carry(server, client);
  }
  if (!client.layer.established() || !server.layer.established()) {
    std::fprintf(stderr, "no session: %s\n", client.layer.error().c_str());
    abort();
  }
  const bool reused = SSL_session_reused(client.layer.ssl()) == 1;
  if (reused != (SSL_session_reused(server.layer.ssl()) == 1)) abort();
  client.layer.close();
  server.layer.close();
  return reused;
}

}  // namespace

int main() {
  std::string directory = (std::filesystem::temp_directory_path() / "sluice-bench-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 1;
  bool failed = false;
  const auto line = [&failed](const char* what, double value, const char* unit, bool good) {
    std::printf("%-44s %10.4f %s%s\n", what, value, unit, good ? "" : "   BEYOND ITS BOUND");
    failed |= !good;
  };
  {
    const AuthorityFiles files = authority_files({}, directory);
    Mint mint(files, utc_now, kLeaves + 1);
    ClientSide clients;
    OriginSide origins(files.certificate);
    OriginSessions sessions;
    const std::string host = "origin.test";
    fetch(mint, host);  // and the CA

    std::vector<double> times;
    for (int i = 0; i < kLeaves; ++i) {
      const double before = cpu_ms();
      fetch(mint, "host" + std::to_string(i) + ".test");
      times.push_back(cpu_ms() - before);
    }
    const double leaf = median(times);
    line("a leaf, from order to delivery", leaf, "ms CPU", leaf < kMostLeafMs);

    const std::size_t minted = mint.minted();
    int resumed = 0;
    std::vector<double> full, short_ones;
    for (int i = 0; i < kHandshakes; ++i) {
      const auto context = origins.context({});
      if (!context) return 1;
      End server(clients.accept(*fetch(mint, host), host, 443));
      End client(sessions.connect(**context, host + ":443", host));
      const double before = cpu_ms();
      const bool reused = shake_hands(client, server);
      (reused ? short_ones : full).push_back(cpu_ms() - before);
      resumed += reused ? 1 : 0;
    }
    const auto more = static_cast<double>(mint.minted() - minted);
    line("leaves minted in 1000 warm handshakes", more, "", more == 0);
    const double ratio = resumed / static_cast<double>(kHandshakes - 1);  // the first cannot be
    line("resumed, of those that could be, both sides", ratio, "", ratio >= kLeastResumed);
    if (!full.empty())
      line("the full handshake, both sides together", median(full), "ms CPU", true);
    if (!short_ones.empty())
      line("a resumed one, both sides together", median(short_ones), "ms CPU", true);
  }
  std::filesystem::remove_all(directory);
  return failed ? 1 : 0;
}
