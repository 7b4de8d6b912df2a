#include "proxy/net/peer_user.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "proxy/net/socket.h"

namespace sluice {
namespace {

constexpr int kLooks = 3;  // the list moves while it is read, and one that is there may be missed

std::string read_all(const char* path) {
  const OwnedSocket file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string out;
  std::array<char, 65536> buffer;
  for (ssize_t size; (size = read(file.get(), buffer.data(), buffer.size())) > 0;) {
    out.append(buffer.data(), static_cast<std::size_t>(size));
  }
  return out;
}

// proc(5): each four bytes of an address as the machine holds them, the port in its usual order.
std::string as_listed(std::string_view before, const Address& address) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, address.bytes.data(), sizeof bytes);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%08X:%04X", bytes, address.port);
  return std::string(before) + text.data();
}

// RFC 4291 §2.5.5.2: what a socket for both kinds of addresses has for an IPv4 one.
std::string mapped() {
  const std::uint8_t bytes[] = {0, 0, 0xff, 0xff};
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof bytes);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%016X%08X", 0, word);
  return text.data();
}

}  // namespace

std::optional<uid_t> find_peer_user(std::string_view table, const Address& peer,
                                    const Address& own) {
  for (const std::string& before : {std::string(), mapped()}) {
    const std::string wanted = " " + as_listed(before, peer) + " " + as_listed(before, own) + " ";
    const auto at = table.find(wanted);
    if (at == std::string_view::npos) continue;
    const std::size_t begin = at + wanted.size();
    std::istringstream rest(std::string(table.substr(begin, table.find('\n', begin) - begin)));
    std::string state, queues, timer, retries, timeout;
    uid_t user = 0;
    unsigned long inode = 0;
    rest >> state >> queues >> timer >> retries >> user >> timeout >> inode;
    // One that its process has closed is listed as root's, and has no inode.
    if (!rest || inode == 0) return std::nullopt;
    return user;
  }
  return std::nullopt;
}

std::optional<uid_t> peer_user(const Address& peer, const Address& own) {
  for (int i = 0; i < kLooks; ++i) {
    for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
      if (const auto user = find_peer_user(read_all(table), peer, own)) return user;
    }
  }
  return std::nullopt;
}

}  // namespace sluice
