#include "proxy/door/passing.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sluice {
namespace {

union Control {
  cmsghdr header;  // for its alignment
  char room[CMSG_SPACE(sizeof(int))];
};

}  // namespace

bool pass_socket(int over, int socket) {
  char byte = '+';
  iovec text{&byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.room;
  message.msg_controllen = sizeof control.room;
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof socket);
  std::memcpy(CMSG_DATA(part), &socket, sizeof socket);
  return sendmsg(over, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

Passed next_passed(int over) {
  Passed out;
  iovec text{&out.byte, 1};
  Control control{};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control.room;
  message.msg_controllen = sizeof control.room;
  const ssize_t size = recvmsg(over, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size == 0) {
    out.io = Io::ended;
  } else if (size < 0) {
    out.io = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Io::blocked : Io::failed;
  } else {
    out.io = Io::moved;
    const cmsghdr* part = CMSG_FIRSTHDR(&message);
    if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
        part->cmsg_len == CMSG_LEN(sizeof(int))) {
      int socket = -1;
      std::memcpy(&socket, CMSG_DATA(part), sizeof socket);
      out.socket = OwnedSocket(socket);
    }
  }
  return out;
}

}  // namespace sluice
