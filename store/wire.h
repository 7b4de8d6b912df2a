// Bytes as the store writes them, on any machine: little-endian numbers and fields that say their
// own length, so that a reader can skip what it does not know. A WireReader never reads past its
// end: a short or odd input makes it fail, and a failed reader gives zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/result.h"

namespace sluice {

class WireWriter {
 public:
  template <class T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
  }
  void text(std::string_view value) { bytes_.append(value); }

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T number() {
    const std::string_view raw = text(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < raw.size(); ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(raw[i])) << (8 * i);
    return static_cast<T>(value);
  }
  std::string_view text(std::size_t size) {
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  bool done() const { return rest_.empty() || !ok_; }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// A sealed record: its kind, the version that wrote it, the oldest version that can read it, its
// fields, and a CRC-32 over all of them.
struct Seal {
  char kind = 0;              // never reuse a letter
  std::uint8_t written = 1;   // raised by each release that adds a field
  std::uint8_t readable = 1;  // raised only when an older reader would get it wrong
};

std::string seal(Seal seal, std::string_view fields);

// The fields of a record of this kind that a reader of this version understands.
Result<std::string_view> unseal(std::string_view bytes, char kind, std::uint8_t version);

// A field inside a sealed record: a tag, a length, and that many bytes, at most 65,535.
void put_field(WireWriter& writer, std::uint8_t tag, std::string_view bytes);

struct WireField {
  std::uint8_t tag = 0;
  std::string_view bytes;
};
std::optional<WireField> next_field(WireReader& reader);

}  // namespace sluice
