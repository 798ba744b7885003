#pragma once
// A dead man's switch for what may never return: MPI's start-up and end, a wait of a rank that is stuck inside MPI, an
// engine that does not end after an error. It starts before MPI and calls nothing of MPI. Naming the lost rank is the
// work of the waits themselves (comm/mpi_transport.hpp); the watchdog is what is left when they cannot.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace vpp {

/// Invariant: `on_fatal` is called at most once, from the watchdog's thread, with one sentence and an exit code. It is
/// expected to end the process (MpiSession::abort, then _exit); the watchdog itself never does.
class Watchdog {
  public:
    using Fatal = std::function<void(const std::string& text, int code)>;
    struct Options {
        Fatal on_fatal = {};
        std::function<double()> now = {};  ///< seconds; empty: the steady clock
        double period_seconds = 0.05;      ///< how often it looks; 0: no thread, the owner calls look()
    };

    /// While it lives, something is under way; ended by its end or destructor. Movable, one owner.
    class Phase {
      public:
        Phase() = default;
        Phase(Watchdog* watchdog, uint64_t id) : watchdog_(watchdog), id_(id) {}
        Phase(Phase&& other) noexcept : watchdog_(std::exchange(other.watchdog_, nullptr)), id_(other.id_) {}
        Phase& operator=(Phase&& other) noexcept;
        ~Phase() { end(); }
        void end();

      private:
        Watchdog* watchdog_ = nullptr;
        uint64_t id_ = 0;
    };

    explicit Watchdog(Options options);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// Starts a clock: when the phase lasts longer than `seconds`, on_fatal(text, code) is called.
    /// Requires: the watchdog outlives the phase. Calls: local, from any thread.
    Phase begin(std::string text, double seconds, int code = 75);

    /// Looks at all phases once. A gap between two looks (this process was stopped, the machine slept) counts for none.
    void look();

  private:
    struct Running {
        std::string text;
        double expires_seconds = 0;
        int code = 0;
    };
    void end(uint64_t id);

    Options options_;
    std::mutex mutex_;
    std::map<uint64_t, Running> running_;
    uint64_t next_id_ = 1;
    double last_look_seconds_ = 0;
    bool fatal_ = false;
    std::jthread thread_;
};

}  // namespace vpp
