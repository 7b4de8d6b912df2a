// Whose turn it is among the requests that wait for one key: fair between jobs, then between the
// clients of a job, then between a client's connections, and in order within each of those. Holds
// numbers, not requests; bounded; the deadline of each is known. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/time.h"

namespace sluice {

// One that waits. The numbers are the caller's: equal ones belong together.
struct Waiter {
  std::uint64_t id = 0;  // unique in its queue
  std::uint64_t job = 0;
  std::uint64_t client = 0;      // within the job
  std::uint64_t connection = 0;  // within the client
  Instant deadline{};            // when it gives up; Instant::max(): never

  bool operator==(const Waiter&) const = default;
};

class FairQueue {
 public:
  explicit FairQueue(std::size_t most) : most_(most) {}

  // False: it is full. One that was let go and comes back, a retry, goes `first` in its connection,
  // even when that is one too many.
  bool push(const Waiter& waiter, bool first = false);

  // Whose turn it is; null: nobody waits. Looking costs no turn.
  const Waiter* front() const;
  std::optional<Waiter> pop();
  // The same among those who are `wanted`, when it is no use asking the others. Only the first of
  // each connection may go.
  using Wanted = std::function<bool(const Waiter&)>;
  const Waiter* front(const Wanted& wanted) const;
  void take_turn(std::uint64_t id);  // of one that front() named: it goes

  // It left, or was answered otherwise. False: it is not here.
  bool remove(std::uint64_t id);
  // Takes out whose deadline has come, the earliest first.
  std::vector<Waiter> expire(Instant now);
  std::optional<Instant> next_deadline() const;
  void set_deadline(std::uint64_t id, Instant deadline);  // of one that waits; its turn stays

  void set_most(std::size_t most) { most_ = most; }  // who waits already, stays
  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }

 private:
  // Start-time fair queueing: each served turn moves a node's tag one on, the lowest tag is next.
  // Who comes back is not ahead of those who stayed, nor is what it had forgotten.
  struct Node {
    std::uint64_t key = 0;
    Node* parent = nullptr;
    std::uint64_t tag = 0;     // among its siblings
    std::uint64_t order = 0;   // of those with the same tag, who waits longest
    std::uint64_t passed = 0;  // the tag that its children have reached
    std::map<std::pair<std::uint64_t, std::uint64_t>, Node*> waiting;  // children, by tag and order
    std::set<std::pair<std::uint64_t, std::uint64_t>> idle;  // children that are ahead: tag and key
    std::unordered_map<std::uint64_t, std::unique_ptr<Node>> children;
    std::list<Waiter> line;  // of a connection

    bool busy() const { return !line.empty() || !waiting.empty(); }
  };
  struct Place {
    Node* connection;
    std::list<Waiter>::iterator at;
  };

  Node& child(Node& parent, std::uint64_t key);
  void wake(Node& node);
  void rest(Node& node);
  static void refund(Node& connection);
  void forget_idle(Node& parent);
  void erase(std::uint64_t id);
  const Node* next_connection() const;
  static const Waiter* first_of(const Node& node, const Wanted& wanted);

  std::size_t most_;
  std::uint64_t order_ = 0;
  Node root_;
  std::unordered_map<std::uint64_t, Place> places_;
  std::set<std::pair<Instant, std::uint64_t>> deadlines_;
};

}  // namespace sluice
