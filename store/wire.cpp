#include "store/wire.h"

#include <array>

namespace sluice {
namespace {

constexpr std::size_t kHeadSize = 3;  // kind, written, readable
constexpr std::size_t kSumSize = 4;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

// CRC-32 as in RFC 1952 §8. LMDB has no sums of its own: this tells a flipped bit from a cooldown.
std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t value = 0xffffffffu;
  for (const char c : bytes)
    value = value >> 8 ^ kCrcTable[(value ^ static_cast<unsigned char>(c)) & 0xff];
  return ~value;
}

}  // namespace

std::string seal(Seal seal, std::string_view fields) {
  WireWriter writer;
  writer.number(seal.kind);
  writer.number(seal.written);
  writer.number(seal.readable);
  writer.text(fields);
  writer.number(crc32(writer.bytes()));
  return writer.take();
}

Result<std::string_view> unseal(std::string_view bytes, char kind, std::uint8_t version) {
  if (bytes.size() < kHeadSize + kSumSize) return Error{"the record is too short"};
  const std::size_t end = bytes.size() - kSumSize;
  if (WireReader(bytes.substr(end)).number<std::uint32_t>() != crc32(bytes.substr(0, end)))
    return Error{"the record's checksum does not match"};
  if (bytes[0] != kind) return Error{"the record is of another kind"};
  const auto readable = static_cast<std::uint8_t>(bytes[2]);
  if (readable > version)
    return Error{"the record needs version " + std::to_string(readable) + " of its reader"};
  return bytes.substr(kHeadSize, end - kHeadSize);
}

void put_field(WireWriter& writer, std::uint8_t tag, std::string_view bytes) {
  writer.number(tag);
  writer.number(static_cast<std::uint16_t>(bytes.size()));
  writer.text(bytes);
}

std::optional<WireField> next_field(WireReader& reader) {
  if (reader.done()) return std::nullopt;
  const auto tag = reader.number<std::uint8_t>();
  const auto size = reader.number<std::uint16_t>();
  const std::string_view bytes = reader.text(size);
  if (!reader.ok()) return std::nullopt;
  return WireField{tag, bytes};
}

}  // namespace sluice
