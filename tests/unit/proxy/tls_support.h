// What the TLS tests stand on: a scratch directory, a CA in it, and two sessions that talk to each
// other in memory.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "proxy/tls/authority.h"
#include "proxy/tls/certificate.h"
#include "proxy/tls/client_side.h"
#include "proxy/tls/layer.h"
#include "proxy/tls/mint.h"
#include "proxy/tls/origin_side.h"

namespace sluice {

inline constexpr UtcTime kToday{std::chrono::seconds(1'900'000'000)};  // March 2030

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-tls-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::string& path() const { return path_; }
  AuthorityFiles files() const { return authority_files({}, path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

inline std::string content(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// One end of a connection: a layer with buffers of its own.
class End {
 public:
  explicit End(SslPtr ssl) : layer(std::move(ssl), buffers) {}

  std::string take() { return std::exchange(buffers.outbox, {}); }

  TlsBuffers buffers;
  TlsLayer layer;
};

// Everything that can be read now, in any number of steps.
inline std::string read_all(TlsLayer& layer) {
  std::string out;
  char buffer[4096];
  for (std::size_t count = 0; layer.read(buffer, sizeof buffer, count) == Io::moved;) {
    out.append(buffer, count);
  }
  return out;
}

// Lets both ends talk until neither has anything to say; `step`: bytes that move at once.
inline void shake_hands(End& client, End& server, std::size_t step = 1 << 20) {
  std::string to_server, to_client;
  for (int idle = 0; idle < 2;) {
    if (!client.layer.established()) client.layer.handshake();
    if (!server.layer.established()) server.layer.handshake();
    to_server += client.take();
    to_client += server.take();
    idle = to_server.empty() && to_client.empty() ? idle + 1 : 0;
    const auto move = [step](std::string& bytes, TlsLayer& to) {
      to.feed(std::string_view(bytes).substr(0, step));
      if (!to.established()) {
        to.handshake();
      } else {
        char none[1];
        std::size_t count = 0;
        to.read(none, sizeof none, count);
      }
      bytes.erase(0, step);
    };
    if (!to_server.empty()) move(to_server, server.layer);
    if (!to_client.empty()) move(to_client, client.layer);
  }
}

}  // namespace sluice
