// Whose turn it is: fair, in order, bounded, and nobody is forgotten.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "policy/fair_queue.h"

using namespace sluice;

namespace {

constexpr Instant never = Instant::max();

Waiter waiter(std::uint64_t id, std::uint64_t job, std::uint64_t client,
              std::uint64_t connection = 0, Instant deadline = never) {
  return {id, job, client, connection, deadline};
}

std::vector<std::uint64_t> drain(FairQueue& queue) {
  std::vector<std::uint64_t> order;
  while (const auto next = queue.pop()) order.push_back(next->id);
  return order;
}

double jain(const std::map<std::uint64_t, int>& shares) {
  double sum = 0, squares = 0;
  for (const auto& [client, n] : shares) {
    sum += n;
    squares += static_cast<double>(n) * n;
  }
  return sum * sum / (static_cast<double>(shares.size()) * squares);
}

}  // namespace

TEST_CASE("fair queue: another deadline, the same turn") {
  FairQueue queue(10);
  for (std::uint64_t id = 1; id <= 3; ++id) {
    queue.push({.id = id, .client = 1, .connection = id, .deadline = Instant{10s * id}});
  }
  queue.set_deadline(1, Instant{40s});
  queue.set_deadline(9, Instant{1s});  // nobody
  CHECK(queue.next_deadline() == Instant{20s});
  CHECK(queue.front()->id == 1);
  CHECK(queue.expire(Instant{30s}).size() == 2);
  CHECK(queue.expire(Instant{39s}).empty());
  CHECK(queue.expire(Instant{40s}).size() == 1);
}

TEST_CASE("fair queue: those whom it is no use asking are passed over, and keep their turn") {
  FairQueue queue(10);
  queue.push(waiter(1, 1, 1, 1));
  queue.push(waiter(2, 1, 1, 1));  // behind it in its connection
  queue.push(waiter(3, 1, 1, 2));
  queue.push(waiter(4, 1, 2, 1));
  const auto but = [&](std::set<std::uint64_t> apart) {
    const Waiter* const next =
        queue.front([&](const Waiter& one) { return !apart.contains(one.id); });
    return next ? next->id : 0;
  };
  CHECK(but({}) == 1);
  CHECK(but({1}) == 3);
  CHECK(but({1, 3}) == 4);
  CHECK(but({1, 3, 4}) == 0);
  queue.take_turn(4);
  queue.take_turn(3);
  CHECK(queue.size() == 2);
  CHECK(drain(queue) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("fair queue: who waits alone goes in the order of arrival") {
  FairQueue queue(10);
  for (std::uint64_t id : {3, 1, 2}) CHECK(queue.push(waiter(id, 1, 1, 1)));
  CHECK(queue.front()->id == 3);
  CHECK(drain(queue) == std::vector<std::uint64_t>{3, 1, 2});
  CHECK(queue.front() == nullptr);
  CHECK_FALSE(queue.pop());
}

TEST_CASE("fair queue: one with a thousand waiting delays another's single one by one turn") {
  FairQueue queue(2000);
  for (std::uint64_t id = 1; id <= 1000; ++id) queue.push(waiter(id, 1, 1, id));
  for (int i = 0; i < 10; ++i) queue.pop();
  queue.push(waiter(5000, 1, 2));
  const auto first = queue.pop(), second = queue.pop();
  CHECK((first->id == 5000 || second->id == 5000));
}

TEST_CASE("fair queue: jobs come before clients") {
  // One job has three clients, the other one: half of the turns are its own.
  FairQueue queue(1000);
  std::uint64_t id = 0;
  for (int i = 0; i < 60; ++i) {
    for (std::uint64_t client : {1, 2, 3}) queue.push(waiter(++id, 1, client));
    queue.push(waiter(++id, 2, 9));
  }
  std::map<std::uint64_t, int> jobs, clients;
  for (int i = 0; i < 60; ++i) {
    const auto next = queue.pop();
    ++jobs[next->job];
    ++clients[next->client];
  }
  CHECK(jobs[1] == 30);
  CHECK(jobs[2] == 30);
  for (std::uint64_t client : {1, 2, 3}) CHECK(clients[client] == 10);
}

TEST_CASE("fair queue: a client a hundred times as greedy gets no more than the others") {
  FairQueue queue(20000);
  std::mt19937_64 random(7);
  std::uint64_t id = 0;
  std::map<std::uint64_t, int> waiting, served;
  for (std::uint64_t client = 1; client <= 8; ++client) served[client] = 0;
  for (int turn = 0; turn < 4000; ++turn) {
    // Each keeps two waiting, the greedy one two hundred.
    for (std::uint64_t client = 1; client <= 8; ++client) {
      while (waiting[client] < (client == 1 ? 200 : 2)) {
        queue.push(waiter(++id, 0, client, random() % 4));
        ++waiting[client];
      }
    }
    const auto next = queue.pop();
    --waiting[next->client];
    ++served[next->client];
  }
  CHECK(jain(served) > 0.999);
}

TEST_CASE("fair queue: being served and coming back is not a new start") {
  // Both have one waiting at a time. Client 1 was served five times before client 2 came with as
  // many: it is 2's turn until it has caught up with those who waited with it, and no longer.
  FairQueue queue(10);
  std::uint64_t id = 0;
  for (int i = 0; i < 5; ++i) {
    queue.push(waiter(++id, 0, 1));
    queue.pop();
  }
  std::map<std::uint64_t, int> served;
  for (int i = 0; i < 20; ++i) {
    queue.push(waiter(++id, 0, 1));
    queue.push(waiter(++id, 0, 2));
    for (int n = 0; n < 2; ++n) ++served[queue.pop()->client];
  }
  CHECK(served[1] == 20);
  CHECK(served[2] == 20);
}

TEST_CASE("fair queue: in order within one connection, a retry at its head") {
  FairQueue queue(2);
  queue.push(waiter(1, 0, 1, 7));
  queue.push(waiter(2, 0, 1, 7));
  CHECK_FALSE(queue.push(waiter(3, 0, 2, 8)));  // full
  const auto one = queue.pop();
  CHECK(queue.push(waiter(3, 0, 2, 8)));
  CHECK(queue.push(*one, true));  // even though it is full again
  CHECK(queue.size() == 3);
  const auto order = drain(queue);
  CHECK(std::find(order.begin(), order.end(), 1) < std::find(order.begin(), order.end(), 2));
}

TEST_CASE("fair queue: who leaves is gone, and the rest keep their turns") {
  FairQueue queue(10);
  for (std::uint64_t id = 1; id <= 4; ++id) queue.push(waiter(id, 0, id));
  CHECK(queue.remove(2));
  CHECK_FALSE(queue.remove(2));
  CHECK_FALSE(queue.push(waiter(3, 0, 3)));  // it waits already
  CHECK(drain(queue) == std::vector<std::uint64_t>{1, 3, 4});
}

TEST_CASE("fair queue: deadlines") {
  constexpr Instant start{1h};
  FairQueue queue(10);
  CHECK_FALSE(queue.next_deadline());
  queue.push(waiter(1, 0, 1, 0, start + 3s));
  queue.push(waiter(2, 0, 1, 0, start + 1s));
  queue.push(waiter(3, 0, 2, 0));
  CHECK(queue.next_deadline() == start + 1s);
  CHECK(queue.expire(start).empty());
  const auto gone = queue.expire(start + 3s);
  REQUIRE(gone.size() == 2);
  CHECK(gone[0].id == 2);
  CHECK(gone[1].id == 1);
  CHECK_FALSE(queue.next_deadline());
  CHECK(drain(queue) == std::vector<std::uint64_t>{3});
}

TEST_CASE("fair queue: ten thousand that come, leave and expire in any order are each seen once") {
  std::mt19937_64 random(3);
  FairQueue queue(10000);
  std::set<std::uint64_t> inside, done;
  std::uint64_t id = 0;
  Instant now{1h};
  const auto leaves = [&](std::uint64_t gone) {
    CHECK(inside.erase(gone) == 1);
    CHECK(done.insert(gone).second);
  };
  for (int step = 0; step < 60000; ++step) {
    now += Duration(random() % 1000);
    const auto what = random() % 8;
    if (what < 5) {
      const Instant deadline = random() % 2 ? never : now + Duration(random() % 40'000'000);
      const bool room = inside.size() < 10000;
      const bool taken =
          queue.push(waiter(++id, random() % 5, random() % 50, random() % 3, deadline));
      CHECK(taken == room);
      if (taken) inside.insert(id);
    } else if (what == 5) {
      if (const auto next = queue.pop()) leaves(next->id);
    } else if (what == 6 && !inside.empty()) {
      const auto any = *inside.lower_bound(random() % (*inside.rbegin() + 1));
      CHECK(queue.remove(any));
      leaves(any);
    } else {
      for (const auto& gone : queue.expire(now)) leaves(gone.id);
    }
    if (queue.size() != inside.size()) FAIL("sizes differ at step " << step);
  }
  for (const auto rest : drain(queue)) leaves(rest);
  CHECK(inside.empty());
}
