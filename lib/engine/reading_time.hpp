#pragma once
// How long ranks wait for each other while some of them read large files: a checkpoint, weights to begin with.
#include <cstdint>

#include "comm/transport.hpp"

namespace vpp {

/// What reading so many bytes may take, on the slowest disk that is thought of.
double reading_seconds(uint64_t bytes);

/// While it lives, the deadline fits the rank that has most to read; it is never shorter than before.
class ReadingTime {
  public:
    /// `own_bytes`: of files, that this rank may read.
    /// Calls: collective.
    ReadingTime(Transport& transport, uint64_t own_bytes);
    /// The deadline is what it was.
    ~ReadingTime();
    ReadingTime(const ReadingTime&) = delete;
    ReadingTime& operator=(const ReadingTime&) = delete;

    /// Waits until all ranks have read.  Calls: collective.
    void wait_for_all();

  private:
    Transport& transport_;
    double before_seconds_;
};

}  // namespace vpp
