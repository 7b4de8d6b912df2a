// Bytes on the disk: sums, versions, fields, and the events made of them.
#include "store/wire.h"

#include <doctest/doctest.h>

#include <string>

#include "store/event.h"
#include "unit/store/support.h"

using namespace sluice;
using namespace sluice::testing;

TEST_CASE("wire: numbers are little-endian, and a short input gives zeros and fails") {
  WireWriter writer;
  writer.number(std::uint16_t{0x0102});
  writer.number(std::int64_t{-2});
  writer.text("ab");
  CHECK(writer.bytes() == std::string("\x02\x01\xfe\xff\xff\xff\xff\xff\xff\xff") + "ab");
  WireReader reader(writer.bytes());
  CHECK(reader.number<std::uint16_t>() == 0x0102);
  CHECK(reader.number<std::int64_t>() == -2);
  CHECK(reader.text(2) == "ab");
  CHECK(reader.done());
  CHECK(reader.ok());
  CHECK(reader.number<std::uint8_t>() == 0);
  CHECK(!reader.ok());
  CHECK(reader.text(0) == "");
}

TEST_CASE("wire: fields say their own length, and one that is cut off ends the reading") {
  WireWriter writer;
  put_field(writer, 7, "seven");
  put_field(writer, 8, "");
  WireReader reader(writer.bytes());
  const auto seven = next_field(reader), eight = next_field(reader);
  REQUIRE(seven);
  CHECK(seven->tag == 7);
  CHECK(seven->bytes == "seven");
  REQUIRE(eight);
  CHECK(eight->bytes == "");
  CHECK(!next_field(reader));
  CHECK(reader.ok());
  for (std::size_t size = 1; size < writer.bytes().size() - 3; ++size) {
    WireReader cut(std::string_view(writer.bytes()).substr(0, size));
    while (next_field(cut)) {}
    CHECK(cut.ok() == (size == 8));  // between the two
  }
}

TEST_CASE("wire: a seal holds its kind, its version and its sum") {
  const std::string bytes = seal({'X', 3, 2}, "fields");
  CHECK(*unseal(bytes, 'X', 2) == "fields");
  CHECK(*unseal(bytes, 'X', 9) == "fields");
  CHECK(unseal(bytes, 'Y', 2).error() == "the record is of another kind");
  CHECK(unseal(bytes, 'X', 1).error() == "the record needs version 2 of its reader");
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[i] ^= static_cast<char>(1 << bit);
      CHECK(!unseal(flipped, 'X', 255));
    }
    CHECK(!unseal(bytes.substr(0, i), 'X', 255));
  }
  CHECK(unseal("", 'X', 1).error() == "the record is too short");
}

TEST_CASE("event: there and back") {
  const Event event{kNoon, EventKind::operator_act, "api.example.com", "opened for 10 min"};
  CHECK(*decode_event(encode_event(event)) == event);
  CHECK(*decode_event(encode_event({})) == Event{});
}

TEST_CASE("event: one with more fields than we know is read; one cut short is not") {
  const std::string sealed = encode_event({kNoon, EventKind::alert, "k", "t"});
  const std::string_view fields = *unseal(sealed, 'E', 1);
  CHECK(decode_event(seal({'E', 9, 1}, std::string(fields) + "more"))->text == "t");
  CHECK(decode_event(seal({'E', 1, 1}, fields.substr(0, fields.size() - 2))).error() ==
        "the event ends too early");
  CHECK(decode_event("nonsense").error() == "the record's checksum does not match");
}

TEST_CASE("event: every kind has a word, and those of later versions are \"other\"") {
  std::string words;
  for (int kind = 0; kind < 9; ++kind)
    words += std::string(event_kind_name(static_cast<EventKind>(kind))) + " ";
  CHECK(words == "transition operator anomaly alert store budget policy other other ");
}
