#include "report/run_end.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/run_files.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kLongestEnd = uint64_t{1} << 20;

/// What is written: who finds an end finds it whole. Whoever makes this file is the only one who tells.
fs::path part_of(const fs::path& end) {
    return end.string() + ".tmp";
}

}  // namespace

bool RunEnd::is_failure() const {
    return exit_code != 0 && exit_code != vpp::exit_code(ErrorKind::Stopped);
}

std::string RunEnd::state() const {
    if (is_failure()) return "failed with " + std::to_string(exit_code);
    return exit_code == 0 ? "done" : "stopped";
}

void forget_run_end(const fs::path& run_folder) {
    std::error_code ignored;
    const fs::path path = run_folder / run_files::kEnd;
    fs::remove(path, ignored);
    fs::remove(part_of(path), ignored);  // of one that was killed as it told
}

bool keep_run_end(const fs::path& run_folder, const RunEnd& end) {
    using Json = nlohmann::ordered_json;
    const Json json{{"exit_code", end.exit_code}, {"text", end.text}};
    const std::string text = json_text(json) + "\n";
    const fs::path path = run_folder / run_files::kEnd, part = part_of(path);
    const int fd = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    bool is_told =
        ::access(path.c_str(), F_OK) != 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    is_told = ::close(fd) == 0 && is_told && ::rename(part.c_str(), path.c_str()) == 0;
    if (!is_told) ::unlink(part.c_str());  // it would bar a later one, when there is room
    return is_told;
}

std::optional<RunEnd> read_run_end(const fs::path& run_folder) {
    const fs::path path = run_folder / run_files::kEnd;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return std::nullopt;
    const auto json = nlohmann::json::parse(read_text_file(path, kLongestEnd), nullptr, false);
    const bool is_end = json.is_object() && json.contains("exit_code") && json["exit_code"].is_number_unsigned() &&
                        json["exit_code"] <= 255 && json.contains("text") && json["text"].is_string();
    if (!is_end) throw Error(ErrorKind::BadData, "end.json does not tell an exit_code and a text");
    return RunEnd{json["exit_code"].get<int>(), json["text"].get<std::string>()};
}

}  // namespace vpp
