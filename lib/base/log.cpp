#include "base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <utility>

namespace vpp {

namespace {

class StderrSink : public spdlog::sinks::stderr_sink_mt {
  public:
    void log(const spdlog::details::log_msg& line) override {
        const std::lock_guard lock(mutex_);
        if (make_way_) make_way_();
        spdlog::sinks::stderr_sink_mt::log(line);
    }
    void before_lines(std::function<void()> make_way) {
        const std::lock_guard lock(mutex_);
        make_way_ = std::move(make_way);
    }

  private:
    std::mutex mutex_;
    std::function<void()> make_way_;
};

}  // namespace

struct Log::Impl {
    explicit Impl(spdlog::sink_ptr sink) : logger("vpp", std::move(sink)) { logger.flush_on(spdlog::level::info); }
    spdlog::logger logger;
    std::shared_ptr<StderrSink> to_stderr;  ///< null where nothing goes there
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::~Log() = default;

// "{}": a line is never a format.
void Log::debug(const std::string& line) {
    impl_->logger.debug("{}", line);
}
void Log::info(const std::string& line) {
    impl_->logger.info("{}", line);
}
void Log::warn(const std::string& line) {
    impl_->logger.warn("{}", line);
}
void Log::error(const std::string& line) {
    impl_->logger.error("{}", line);
}

void Log::add_file(const std::string& path) {
    try {
        auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, false);
        sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l: %v");
        impl_->logger.sinks().push_back(std::move(sink));
    } catch (const spdlog::spdlog_ex& error) {
        warn(std::string("no log file is written: ") + error.what());
    }
}

void Log::before_lines(std::function<void()> make_way) {
    if (impl_->to_stderr) impl_->to_stderr->before_lines(std::move(make_way));
}

Logger make_logger(const std::string& level, int rank) {
    auto sink = std::make_shared<StderrSink>();
    auto impl = std::make_unique<Log::Impl>(sink);
    impl->to_stderr = std::move(sink);
    impl->logger.set_pattern(rank < 0 ? "%l: %v" : "[rank " + std::to_string(rank) + "] %l: %v");
    impl->logger.set_level(spdlog::level::from_str(level == "warn" ? "warning" : level));
    return std::make_shared<Log>(std::move(impl));
}

Logger make_silent_logger() {
    return std::make_shared<Log>(std::make_unique<Log::Impl>(std::make_shared<spdlog::sinks::null_sink_mt>()));
}

Logger make_stream_logger(std::ostream& out) {
    auto impl = std::make_unique<Log::Impl>(std::make_shared<spdlog::sinks::ostream_sink_mt>(out));
    impl->logger.set_pattern("%l: %v");
    return std::make_shared<Log>(std::move(impl));
}

}  // namespace vpp
