#include "report/tensorboard.hpp"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/process.hpp"
#include "report/crc32c.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kNameStart = "events.out.tfevents.";

// Wire types of protobuf.
enum Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Field numbers of the messages.
constexpr int kEventWallTime = 1, kEventStep = 2, kEventFileVersion = 3, kEventSummary = 5, kEventSessionLog = 7;
constexpr int kSummaryValue = 1, kValueTag = 1, kValueSimpleValue = 2;
constexpr int kSessionLogStatus = 1, kSessionStart = 1;

template <class Number>
void put_fixed(std::string& out, Number number) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_varint(std::string& out, uint64_t number) {
    for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
    out += static_cast<char>(number);
}

void put_key(std::string& out, int field, Wire wire) {
    put_varint(out, static_cast<uint64_t>(field) << 3 | wire);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
    put_key(out, field, kBytes);
    put_varint(out, bytes.size());
    out += bytes;
}

std::string event_start(double wall_time, int64_t step) {
    std::string event;
    put_key(event, kEventWallTime, kFixed64);
    put_fixed(event, wall_time);
    put_key(event, kEventStep, kVarint);
    put_varint(event, static_cast<uint64_t>(step));
    return event;
}

/// The seconds in the name of an event file; nothing for other files.
std::optional<int64_t> seconds_of(const std::string& name) {
    if (!name.starts_with(kNameStart)) return std::nullopt;
    int64_t seconds = 0;
    const char* start = name.data() + kNameStart.size();
    const auto [end, error] = std::from_chars(start, name.data() + name.size(), seconds);
    return error == std::errc() && end > start ? std::optional(seconds) : std::nullopt;
}

/// TensorBoard reads the files of a folder in the order of their names.
fs::path next_file(const fs::path& folder, double now) {
    auto seconds = static_cast<int64_t>(now);
    for (const std::string& name : names_in_folder(folder)) {
        const std::optional<int64_t> taken = seconds_of(name);
        if (taken) seconds = std::max(seconds, *taken + 1);
    }
    char digits[32];
    std::snprintf(digits, sizeof digits, "%010lld", static_cast<long long>(seconds));
    const std::string host = host_name();
    return folder / (std::string(kNameStart) + digits + "." + (host.empty() ? "localhost" : host) + "." +
                     std::to_string(::getpid()));
}

}  // namespace

std::string tfrecord(std::string_view data) {
    std::string record;
    put_fixed(record, static_cast<uint64_t>(data.size()));
    put_fixed(record, masked_crc32c(record));
    record += data;
    put_fixed(record, masked_crc32c(data));
    return record;
}

std::string version_message(double wall_time) {
    std::string event = event_start(wall_time, 0);
    put_bytes(event, kEventFileVersion, "brain.Event:2");
    return event;
}

std::string session_start_message(double wall_time, int64_t step) {
    std::string log;
    put_key(log, kSessionLogStatus, kVarint);
    put_varint(log, kSessionStart);
    std::string event = event_start(wall_time, step);
    put_bytes(event, kEventSessionLog, log);
    return event;
}

std::string scalars_message(double wall_time, int64_t step, const std::vector<Reading>& readings) {
    std::string summary;
    for (const Reading& reading : readings) {
        if (!reading.value) continue;
        std::string value;
        put_bytes(value, kValueTag, reading.name.tag);
        put_key(value, kValueSimpleValue, kFixed32);
        put_fixed(value, static_cast<float>(*reading.value));
        put_bytes(summary, kSummaryValue, value);
    }
    std::string event = event_start(wall_time, step);
    put_bytes(event, kEventSummary, summary);
    return event;
}

double wall_time() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TensorBoardReporter::TensorBoardReporter(const fs::path& folder, int64_t last_step, Logger logger, WallClock clock)
    : clock_(std::move(clock)) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw Error(ErrorKind::Output, "cannot make " + folder.string() + ": " + error.message());
    const double now = clock_();
    file_ = std::make_unique<AppendFile>(next_file(folder, now), std::move(logger));
    append(version_message(now));
    append(session_start_message(now, last_step + 1));
}

void TensorBoardReporter::add(int64_t step, const std::vector<Reading>& readings) {
    append(scalars_message(clock_(), step, readings));
}

void TensorBoardReporter::append(const std::string& message) {
    // Behind a torn record nothing can be read.
    if (!file_->is_torn()) file_->append(tfrecord(message));
}

}  // namespace vpp
