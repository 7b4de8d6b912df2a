// hold_store DIRECTORY : begins a write to the store and stays in the middle of it until it is
// killed, as a process that was stopped there. Says so on standard output once it is.
#include <unistd.h>

#include <iostream>

#include "proxy/clock.h"
#include "store/blocking.h"
#include "store/open.h"

using namespace sluice;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto opened = open_store("lmdb:", argv[1], utc_now());
  if (!opened) {
    std::cerr << opened.error() << "\n";
    return 1;
  }
  const auto never = wait_for([&](Completion done) {
    opened->store->update(
        "held",
        [](std::optional<std::string_view>) -> Change {
          std::cout << "held" << std::endl;
          for (;;) pause();
        },
        std::move(done));
  });
  return never ? 0 : 1;
}
