#pragma once
// The log: lines to stderr and, once the run folder is known, to a file. Results go to stdout and never through here.
// spdlog stays inside log.cpp: LibTorch's headers bring a fmt of another version.
#include <functional>
#include <memory>
#include <ostream>
#include <string>

namespace vpp {

/// Writes lines by level; safe from any thread.
class Log {
  public:
    struct Impl;
    explicit Log(std::unique_ptr<Impl> impl);
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    void debug(const std::string& line);
    void info(const std::string& line);
    void warn(const std::string& line);
    void error(const std::string& line);
    /// Adds a file; a file that cannot be opened is said once and left out.
    void add_file(const std::string& path);
    /// Calls `make_way` before every line that goes to stderr, from the thread that writes it, so that what else draws
    /// on the terminal can make room; an empty function ends that. Behind this call the former one is not called.
    void before_lines(std::function<void()> make_way);

  private:
    std::unique_ptr<Impl> impl_;
};

using Logger = std::shared_ptr<Log>;

/// A logger to stderr whose lines carry the rank when `rank` >= 0.
/// Requires: level is one of trace, debug, info, warn, error, off (app checks it).
Logger make_logger(const std::string& level, int rank = -1);
/// A logger that drops everything but what a file added later gets.
Logger make_silent_logger();
/// A logger to a stream that outlives it.
Logger make_stream_logger(std::ostream& out);

}  // namespace vpp
