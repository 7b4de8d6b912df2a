// The folder that a store lives in: who uses it, and what becomes of a damaged file in it. Owns a
// lock on the folder for as long as the store is open. Nothing is ever deleted here.
#pragma once

#include <string>

#include "policy/result.h"
#include "policy/time.h"

namespace sluice {

class StoreDirectory {
 public:
  // Makes the folder, and those above it, for the owner only where they are missing.
  static Result<StoreDirectory> open(const std::string& path);

  StoreDirectory(StoreDirectory&& other) noexcept;
  StoreDirectory& operator=(StoreDirectory&&) = delete;
  ~StoreDirectory();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

  // True if no other process has the store open; then none can open it until share().
  bool lock_alone();
  // Waits for a process that is alone with it; from then on nobody is alone but after we are gone.
  void share();

  // Renames `name` to `name.damaged-20260312T100000Z` and gives the new path.
  Result<std::string> set_aside(const std::string& name, UtcTime now);
  // A file that root has made belongs to the folder's owner, who must be able to use it later.
  void hand_over(const std::string& name);
  // After this, files made or renamed in the folder are still there after a power loss.
  void sync();

 private:
  StoreDirectory(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

}  // namespace sluice
