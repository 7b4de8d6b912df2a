#include "proxy/exec_token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "proxy/net/socket.h"
#include "proxy/random_text.h"

namespace sluice {
namespace {

constexpr std::size_t kSecretBytes = 20;
constexpr std::size_t kRunLimit = 32;

bool is_alphanumeric(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

// Complete when it appears, and never in place of another one.
bool make_file(const std::string& path) {
  const std::string draft = path + "." + std::to_string(getpid());
  const std::string text = "exec-" + random_hex(kSecretBytes) + "\n";
  unlink(draft.c_str());
  const OwnedSocket file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool written =
      file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool placed = written && (link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int problem = errno;
  unlink(draft.c_str());
  errno = problem;
  return placed;
}

}  // namespace

Result<ExecToken> ExecToken::load_or_make(const std::string& state_directory) {
  const std::string path = state_directory + "/exec.token";
  std::error_code failed;
  if (std::filesystem::create_directories(state_directory, failed)) {
    chmod(state_directory.c_str(), 0700);
  }
  if (access(path.c_str(), F_OK) != 0 && !make_file(path)) {
    return Error{path + " cannot be made: " + std::strerror(errno)};
  }
  const OwnedSocket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0) {
    return Error{path + " cannot be read: " + std::strerror(errno)};
  }
  if ((about.st_mode & 077) != 0) {
    return Error{path + " can be read by others: remove it, and a new one is made"};
  }
  std::array<char, 256> buffer{};
  const ssize_t size = ::read(file.get(), buffer.data(), buffer.size());
  std::string text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.size() < kSecretBytes)
    return Error{path + " is damaged: remove it, and a new one is made"};
  return ExecToken(std::move(text));
}

std::string ExecToken::password(const Shown& shown) const {
  return text_ + "." + shown.run + "." + std::to_string(shown.max_requests);
}

std::optional<ExecToken::Shown> ExecToken::read(std::string_view password) const {
  const std::string_view secret = password.substr(0, text_.size());
  if (secret.size() != text_.size() ||
      CRYPTO_memcmp(secret.data(), text_.data(), text_.size()) != 0) {
    return std::nullopt;
  }
  password.remove_prefix(secret.size());
  const auto dot = password.find('.', 1);
  if (!password.starts_with('.') || dot == std::string_view::npos || dot > kRunLimit) {
    return std::nullopt;
  }
  Shown shown{std::string(password.substr(1, dot - 1))};
  const char* end = password.data() + password.size();
  const auto number = std::from_chars(password.data() + dot + 1, end, shown.max_requests);
  if (number.ec != std::errc() || number.ptr != end || !is_alphanumeric(shown.run)) {
    return std::nullopt;
  }
  return shown;
}

}  // namespace sluice
