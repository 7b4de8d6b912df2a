// A connected socket handed to another process over a unix socket (unix(7), SCM_RIGHTS), among
// bytes that are read one by one.
#pragma once

#include "proxy/net/io.h"
#include "proxy/net/socket.h"

namespace sluice {

// Never waits. False: it was not taken.
bool pass_socket(int over, int socket);

struct Passed {
  Io io = Io::blocked;
  char byte = 0;         // when moved
  OwnedSocket socket{};  // what came with it, if anything
};
// Never waits.
Passed next_passed(int over);

}  // namespace sluice
