#pragma once
// Reads what the next forward passes of a rank need while others compute. A thread of its own goes through the needs of
// a step in the order of the schedule, and on into the next step, some ahead of who takes them. It calls neither MPI
// nor LibTorch, gets no signals, and keeps to itself what went wrong until that need is asked for.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "program/input_needs.hpp"
#include "schedule/measured_step.hpp"

namespace vpp {

/// A rank that waits for its data says so before the others, which wait for the rank, give it up.
inline constexpr double kShareOfDeadline = 0.75;

/// What errors call the data, and what a step is.
struct PrefetchWords {
    std::string data = "training data";
    std::string step = "step";
};

class Prefetch {
  public:
    using Read = std::function<std::vector<std::byte>(const InputNeed&)>;

    /// `needs` is what a step takes, in order, its `step` unused; at most `ahead` inputs are read and not taken yet, or
    /// being read, none behind the last of `num_steps` steps, or behind the step that is asked for where that is a
    /// later one. 0 ahead: there is no thread, and an input is read when it is taken. Nothing is read before the first
    /// take. Requires: `read` owns what it uses, since the thread may outlive this object.
    Prefetch(std::vector<InputNeed> needs, int64_t num_steps, Read read, size_t ahead, PrefetchWords words = {});
    /// Waits for a read under way, but not for a disk that does not answer.
    ~Prefetch();
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;

    /// The bytes of one of the needs; waits until they are read. One that is not the next in order (a step that is
    /// repeated, or the first one of a run) drops what was read and begins there.
    /// Throws: what reading it threw; Error{RankLost} when the thread does not have it within the deadline.
    std::vector<std::byte> take(const InputNeed& need, double deadline_seconds);

    /// What was read since the last call, dropped reads too.
    std::vector<ReadSpan> take_spans();

  private:
    struct Shared;
    std::shared_ptr<Shared> shared_;  ///< the thread's too
};

}  // namespace vpp
