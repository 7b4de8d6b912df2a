// Values by name, for look-ups among thousands of names that no cache holds: the table itself is
// small, a name that is not there costs one place of it, and one that is there the place and the
// name. Values stay where they are. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

template <class Value>
class NameTable {
 public:
  bool empty() const { return entries_.empty(); }

  const Value* find(std::string_view name) const {
    if (places_.empty()) return nullptr;
    const Place& found = places_[place_of(name, hash_of(name))];
    return found.number == 0 ? nullptr : &entries_[found.number - 1].value;
  }

  // Made if it is not there.
  Value& operator[](std::string_view name) {
    if (2 * (entries_.size() + 1) > places_.size()) make_room();
    Place& place = places_[place_of(name, hash_of(name))];
    if (place.number == 0) {
      entries_.push_back({std::string(name), Value{}});
      place = {hash_of(name), static_cast<std::uint32_t>(entries_.size())};
    }
    return entries_[place.number - 1].value;
  }

 private:
  struct Entry {
    std::string name;
    Value value;
  };
  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  // of the entry, from 1; 0: nobody's
  };

  static std::uint32_t hash_of(std::string_view name) {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
  }

  // Where the name is, or would be.
  std::size_t place_of(std::string_view name, std::uint32_t hash) const {
    const std::size_t mask = places_.size() - 1;
    std::size_t at = hash & mask;
    while (places_[at].number != 0 &&
           (places_[at].hash != hash || entries_[places_[at].number - 1].name != name)) {
      at = (at + 1) & mask;
    }
    return at;
  }

  void make_room() {
    places_.assign(places_.empty() ? 8 : 2 * places_.size(), {});
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const std::uint32_t hash = hash_of(entries_[i].name);
      places_[place_of(entries_[i].name, hash)] = {hash, static_cast<std::uint32_t>(i + 1)};
    }
  }

  std::deque<Entry> entries_;
  std::vector<Place> places_;  // none, or a power of two of them; at most half are taken
};

}  // namespace sluice
