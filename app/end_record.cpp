#include "app/end_record.hpp"

#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_files.hpp"
#include "report/run_end.hpp"

namespace vpp {

namespace {

constexpr std::chrono::seconds kLongest{1};

void write_end(const std::filesystem::path& run_folder, const RunEnd& end) {
    if (!keep_run_end(run_folder, end) || !end.is_failure()) return;
    const Logger log = make_silent_logger();
    log->add_file((run_folder / run_files::kLog).string());
    log->error(end.text + " (exit code " + std::to_string(end.exit_code) + ")");
}

}  // namespace

void EndRecord::open(std::filesystem::path run_folder) {
    const std::lock_guard lock(mutex_);
    run_folder_ = std::move(run_folder);
}

void EndRecord::write(int exit_code, const std::string& text) noexcept try {
    const std::lock_guard lock(mutex_);
    if (run_folder_.empty()) return;
    const auto done = std::make_shared<std::promise<void>>();
    std::thread([done, folder = run_folder_, end = RunEnd{exit_code, text}] {
        try {
            write_end(folder, end);
        } catch (...) {  // the process ends all the same
        }
        done->set_value();
    }).detach();
    done->get_future().wait_for(kLongest);
} catch (...) {  // no memory, no thread: the text went to stderr before
}

}  // namespace vpp
