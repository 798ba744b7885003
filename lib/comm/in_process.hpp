#pragma once
// Ranks as threads of one process, for tests and for `verify` without MPI. One baton goes round: only its holder
// computes, so that ranks may share what a process has once (LibTorch's default generator) and every interleaving
// follows from the seed. The baton changes hands only inside receive, finish_sends and, without overlap, send.
#include <cstdint>
#include <functional>

#include "comm/transport.hpp"

namespace vpp {

struct InProcessOptions {
    int num_ranks = 1;
    uint64_t seed = 0;             ///< chooses who goes on, which messages are late and by how much
    double delay_probability = 0;  ///< of each message; a late one is overtaken by others, never by its own channel
    int max_delay_handovers = 16;  ///< a late message waits for 1 to this many handovers of the baton
    bool overlap = true;           ///< false: send() returns when the message has reached the peer's memory
};

/// A job whose ranks are threads. With overlap a send has gone only when its receive is posted, as with large messages
/// over MPI, so a schedule that would hang there hangs here, and is caught.
class InProcessWorld {
  public:
    explicit InProcessWorld(InProcessOptions options);

    /// Calls body once per rank, each in its own thread, and returns when all have returned. Messages that nobody
    /// received are forgotten; run may be called again.
    /// Throws: what the first failing rank threw, after all threads have ended; the other ranks get Error{RankLost}
    ///         from their current or next wait. When no rank can go on, Error{RankLost} that names every rank's
    ///         position and wait, at once. A rank that keeps the baton longer than the deadline of a waiting one is
    ///         named too (that thread is still waited for: a thread cannot be ended from outside).
    void run(const std::function<void(Transport&)>& body);

  private:
    InProcessOptions options_;
};

}  // namespace vpp
