#pragma once
// Where the numbers of a training go without being asked for: files of the run folder, one row each in sinks.cpp. A new
// sink is a Reporter and a row.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "report/event.hpp"
#include "report/reporters.hpp"

namespace vpp {

/// What a sink is opened for.
struct SinkRequest {
    std::filesystem::path folder;  ///< of the run
    /// What a file says of later steps is not of this run and is cut off. A run that begins, at 0, has no past.
    int64_t last_own_step = 0;
    Logger logger;
};

/// One row of the registry.
struct Sink {
    const char* file;     ///< in the run folder
    const char* summary;  ///< one line: who reads it
    std::unique_ptr<Reporter> (*open)(const SinkRequest& request, const std::filesystem::path& path);
};

const std::vector<Sink>& sinks();

/// Bytes of the files that add_sinks reads through to cut them, at most.
uint64_t size_of_sinks(const std::filesystem::path& folder);

/// Opens all of them. One that cannot be opened is said once and left out: training goes on without it.
void add_sinks(Reporters& reporters, const SinkRequest& request);

}  // namespace vpp
