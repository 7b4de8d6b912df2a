#include "store/store.h"

#include <utility>

namespace sluice {
namespace {

Change write(std::optional<std::string> value, std::uint64_t answer) {
  if (!value) return {Change::Kind::erase, {}, answer};
  return {Change::Kind::put, *std::move(value), answer};
}

}  // namespace

void Store::put(std::string key, std::string value, Completion done) {
  update(
      std::move(key),
      [value = std::move(value)](std::optional<std::string_view>) { return write(value, 1); },
      std::move(done));
}

void Store::erase(std::string key, Completion done) {
  update(
      std::move(key),
      [](std::optional<std::string_view> current) {
        return current ? write(std::nullopt, 1) : Change{};
      },
      std::move(done));
}

void Store::compare_and_set(std::string key, std::optional<std::string> expected,
                            std::optional<std::string> desired, Completion done) {
  update(
      std::move(key),
      [expected = std::move(expected),
       desired = std::move(desired)](std::optional<std::string_view> current) {
        const bool same = expected ? current && *current == *expected : !current;
        return same ? write(desired, 1) : Change{};
      },
      std::move(done));
}

void complete(Completion& done, Result<std::uint64_t> result) {
  if (!done.run) return;
  if (!done.post) return done.run(std::move(result));
  done.post([run = std::move(done.run), result = std::move(result)] { run(result); });
}

std::optional<Error> key_problem(std::string_view key) {
  if (key.empty()) return Error{"a key in the store cannot be empty"};
  if (key.size() > kMaxKeySize)
    return Error{"a key of " + std::to_string(key.size()) + " bytes is too long for the store"};
  return std::nullopt;
}

std::optional<Error> value_problem(std::string_view value) {
  if (value.size() <= kMaxValueSize) return std::nullopt;
  return Error{"a value of " + std::to_string(value.size()) + " bytes is too long for the store"};
}

}  // namespace sluice
