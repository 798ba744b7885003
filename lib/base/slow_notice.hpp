#pragma once
// Says what takes long while it is under way, so that a disk or a network that does not answer is no silence.
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "base/log.hpp"

namespace vpp {

class SlowNotice {
  public:
    /// "still opening the data, 30 s so far; ..." on the log after `first_seconds`, and again each time that twice as
    /// much has passed, until this object ends.  Calls: local.
    SlowNotice(Logger log, std::string what, double first_seconds = 30);
    ~SlowNotice();
    SlowNotice(const SlowNotice&) = delete;
    SlowNotice& operator=(const SlowNotice&) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool has_ended_ = false;
    std::thread thread_;
};

}  // namespace vpp
