#include "proxy/net/peer_user.h"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
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

std::optional<uid_t> listed_peer_user(const Address& peer, const Address& own) {
  for (int i = 0; i < kLooks; ++i) {
    for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
      if (const auto user = find_peer_user(read_all(table), peer, own)) return user;
    }
  }
  return std::nullopt;
}

std::optional<uid_t> peer_user(const Address& peer, const Address& own) {
  const OwnedSocket kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  struct {
    nlmsghdr header;
    inet_diag_req_v2 question;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.question.sdiag_family = AF_INET;
  request.question.sdiag_protocol = IPPROTO_TCP;
  request.question.idiag_states = ~0U;
  inet_diag_sockid& wanted = request.question.id;
  wanted.idiag_sport = htons(peer.port);
  wanted.idiag_dport = htons(own.port);
  std::memcpy(wanted.idiag_src, peer.bytes.data(), sizeof wanted.idiag_src[0]);
  std::memcpy(wanted.idiag_dst, own.bytes.data(), sizeof wanted.idiag_dst[0]);
  wanted.idiag_cookie[0] = wanted.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  alignas(nlmsghdr) std::array<char, 4096> answer;
  if (!kernel || send(kernel.get(), &request, sizeof request, 0) != sizeof request) {
    return listed_peer_user(peer, own);
  }
  const ssize_t size = recv(kernel.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer.data());
  const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(header));
  if (size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof *found)) ||
      header->nlmsg_type != SOCK_DIAG_BY_FAMILY) {
    return listed_peer_user(peer, own);  // there is none, or the kernel was built without this
  }
  // Where there is none, one that listens there would do for the kernel.
  if (found->id.idiag_dport != wanted.idiag_dport || found->idiag_inode == 0) return std::nullopt;
  return found->idiag_uid;
}

}  // namespace sluice
