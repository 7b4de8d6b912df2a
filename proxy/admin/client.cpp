#include "proxy/admin/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "proxy/admin/unix_socket.h"
#include "proxy/clock.h"
#include "proxy/http/reader.h"

namespace sluice {
namespace {

constexpr std::size_t kHeadLimit = 16 * 1024;
constexpr std::size_t kBodyLimit = 64 * 1024 * 1024;

bool ready(int fd, short what, Instant end) {
  pollfd one{fd, what, 0};
  while (true) {
    const auto left = (end - monotonic_now()) / 1ms;
    if (left <= 0) return false;
    const int count = poll(&one, 1, static_cast<int>(left) + 1);
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

bool send_all(int fd, std::string_view bytes, Instant end) {
  while (!bytes.empty()) {
    if (!ready(fd, POLLOUT, end)) return false;
    const ssize_t count = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// True when the answer is complete.
Result<bool> take(Reader& reader, std::string_view in, AdminAnswer& answer) {
  while (true) {
    switch (reader.next(in)) {
      case Reader::Event::more: return false;
      case Reader::Event::head: answer.status = reader.head().status; break;
      case Reader::Event::body:
        if (answer.body.size() + reader.data().size() > kBodyLimit)
          return Error{"the daemon's answer is too large"};
        answer.body += reader.data();
        break;
      case Reader::Event::end: return true;
      case Reader::Event::error: return Error{"the daemon's answer is not HTTP"};
    }
  }
}

std::string sentence_in(const AdminAnswer& answer) {
  const auto body = nlohmann::json::parse(answer.body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_string())
    return body["error"].get<std::string>();
  return "the daemon answered with status " + std::to_string(answer.status);
}

}  // namespace

AdminClient::AdminClient(const std::string& state_directory, Duration patience)
    : path_(state_directory + "/admin.sock"), patience_(patience) {}

Result<AdminAnswer> AdminClient::exchange(const std::string& request) const {
  const Instant end = monotonic_now() + patience_;
  const auto socket = connect_unix(path_);
  if (!socket) return Error{socket.error()};
  if (!send_all(socket->get(), request, end)) return Error{"the daemon takes no request"};
  Reader reader(Reader::Kind::response, kHeadLimit);
  AdminAnswer answer;
  char buffer[64 * 1024];
  while (true) {
    if (!ready(socket->get(), POLLIN, end)) return Error{"the daemon does not answer"};
    const ssize_t count = recv(socket->get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return Error{"the daemon ended in the middle of its answer"};
    const auto done = take(reader, {buffer, static_cast<std::size_t>(count)}, answer);
    if (!done) return Error{done.error()};
    if (*done) return answer;
  }
}

Result<AdminAnswer> AdminClient::get(std::string_view target) const {
  return exchange("GET " + std::string(target) +
                  " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
}

Result<AdminAnswer> AdminClient::post(std::string_view target, const nlohmann::json& body) const {
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return exchange("POST " + std::string(target) +
                  " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  "Content-Type: application/json\r\nContent-Length: " +
                  std::to_string(text.size()) + "\r\n\r\n" + text);
}

Result<nlohmann::json> AdminClient::read(std::string_view target) const {
  const auto answer = get(target);
  if (!answer) return Error{answer.error()};
  if (answer->status != 200) return Error{sentence_in(*answer)};
  auto body = nlohmann::json::parse(answer->body, nullptr, false);
  if (body.is_discarded()) return Error{"the daemon's answer is not JSON"};
  return body;
}

Result<std::string> AdminClient::order(std::string_view target, const nlohmann::json& body) const {
  const auto answer = post(target, body);
  if (!answer) return Error{answer.error()};
  if (answer->status != 200) return Error{sentence_in(*answer)};
  const auto said = nlohmann::json::parse(answer->body, nullptr, false);
  if (!said.is_object() || !said.contains("done") || !said["done"].is_string())
    return Error{"the daemon's answer is not what was asked for"};
  return said["done"].get<std::string>();
}

}  // namespace sluice
