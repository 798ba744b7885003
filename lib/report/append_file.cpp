#include "report/append_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/units.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

struct Cut {
    CutResult result;
    std::string_view before;              ///< all lines before the first that is dropped, with their ends
    std::vector<std::string_view> moved;  ///< runs of kept lines behind it

    size_t moved_bytes() const {
        size_t sum = 0;
        for (const std::string_view part : moved) sum += part.size();
        return sum;
    }
    /// Whether no byte is written over one that is still to be moved.
    bool leaves_what_it_moves() const {
        return moved.empty() || before.data() + before.size() + moved_bytes() <= moved.front().data();
    }
};

Cut find_cut(std::string_view text, int64_t last_step, const StepOfLine& step_of) {
    Cut cut;
    cut.before = text.substr(0, 0);
    while (!text.empty()) {
        const size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            ++cut.result.num_damaged;
            break;
        }
        const std::optional<uint64_t> step = step_of(text.substr(0, end));
        const std::string_view line = text.substr(0, end + 1);
        text.remove_prefix(end + 1);
        if (!step) {
            ++cut.result.num_damaged;
        } else if (last_step < 0 || *step > static_cast<uint64_t>(last_step)) {
            ++cut.result.num_later;
        } else {
            ++cut.result.num_kept;
            std::string_view& last = cut.moved.empty() ? cut.before : cut.moved.back();
            if (last.data() + last.size() == line.data()) {
                last = {last.data(), last.size() + line.size()};
            } else {
                cut.moved.push_back(line);
            }
        }
    }
    return cut;
}

class CutFile {
  public:
    explicit CutFile(const fs::path& path) : path_(path) {
        fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd_ < 0) fail();
    }
    ~CutFile() {
        if (fd_ >= 0) ::close(fd_);
    }
    CutFile(const CutFile&) = delete;
    CutFile& operator=(const CutFile&) = delete;

    /// The moved lines follow those before them; they are on the disk before what they stood in is given up.
    void cut(const Cut& cut) const {
        auto at = static_cast<off_t>(cut.before.size());
        for (const std::string_view part : cut.moved) at = write(at, part);
        if (::fsync(fd_) != 0 || ::ftruncate(fd_, at) != 0 || ::fsync(fd_) != 0) fail();
    }

  private:
    /// Gives where the next one begins.
    off_t write(off_t at, std::string_view part) const {
        constexpr size_t kPiece = size_t{1} << 20;
        while (!part.empty()) {
            const std::string piece(part.substr(0, kPiece));  // out of the file that it is written to
            const ssize_t written = ::pwrite(fd_, piece.data(), piece.size(), at);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) fail();
            at += written;
            part.remove_prefix(static_cast<size_t>(written));
        }
        return at;
    }
    [[noreturn]] void fail() const {
        throw Error(ErrorKind::Output, "cannot cut " + path_.string() + ": " + std::strerror(errno));
    }

    const fs::path& path_;
    int fd_ = -1;
};

void replace_file(const fs::path& path, const Cut& cut) {
    const fs::path temporary = path.string() + ".tmp";
    try {
        OutputFile file(temporary);
        file.write_text(cut.before);
        for (const std::string_view part : cut.moved) file.write_text(part);
        file.finish();
        if (::rename(temporary.c_str(), path.c_str()) != 0) {
            throw Error(ErrorKind::Io, "cannot rename to " + path.string() + ": " + std::strerror(errno));
        }
    } catch (...) {
        std::error_code ignored;
        fs::remove(temporary, ignored);
        throw;
    }
    sync_folder(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

/// A long file needs room for a copy only where lines have to be moved over each other, and does without if need be.
void drop_lines(const fs::path& path, const Cut& cut) {
    const CutFile file(path);
    if (!cut.leaves_what_it_moves()) {
        try {
            return replace_file(path, cut);
        } catch (const Error&) {  // a full disk
        }
    }
    file.cut(cut);
}

}  // namespace

AppendFile::AppendFile(fs::path path, Logger logger) : path_(std::move(path)), logger_(std::move(logger)) {
    // O_NONBLOCK: a named pipe would hold the open until somebody reads; files do not care.
    fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd_ < 0) throw Error(ErrorKind::Output, "cannot open " + path_.string() + ": " + std::strerror(errno));
    struct stat info {};
    if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd_);
        throw Error(ErrorKind::Output, path_.string() + " is not a regular file; move it away");
    }
}

AppendFile::~AppendFile() {
    ::close(fd_);
}

bool AppendFile::ends_a_line() const {
    struct stat info {};
    char last = '\n';
    if (::fstat(fd_, &info) != 0 || info.st_size == 0) return true;
    return ::pread(fd_, &last, 1, info.st_size - 1) == 1 && last == '\n';
}

bool AppendFile::append(std::string_view piece) {
    struct stat before {};
    const bool is_sized = ::fstat(fd_, &before) == 0;
    ssize_t written = -1;
    do {
        written = ::write(fd_, piece.data(), piece.size());
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(piece.size())) {
        is_torn_ = false;
        return true;
    }
    // A write of a part tells no reason; it is a full disk or a size limit.
    const std::string reason = written < 0 ? std::strerror(errno) : "no room for the whole of it";
    if (written > 0) is_torn_ = !(is_sized && ::ftruncate(fd_, before.st_size) == 0) || is_torn_;
    if (num_lost_++ == 0) {
        logger_->warn("cannot write to " + path_.string() + ": " + reason +
                      "; training goes on, and what happens is missing there until there is room");
    }
    return false;
}

LineFile::LineFile(fs::path path, Logger logger) : file_(std::move(path), std::move(logger)) {
    is_torn_ = !file_.ends_a_line();
}

void LineFile::append(std::string line) {
    line += '\n';
    if (is_torn_ || file_.is_torn()) line.insert(line.begin(), '\n');
    if (file_.append(line)) is_torn_ = false;
}

CutResult cut_lines_after(const fs::path& path, int64_t step, const StepOfLine& step_of, const Logger& logger) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(path, ignored))) return {};
    const MappedFile file(path);
    const auto* data = reinterpret_cast<const char*>(file.bytes().data());
    const Cut cut = find_cut({data, file.bytes().size()}, step, step_of);
    if (cut.result.num_damaged > 0) {
        logger->warn(path.string() + ": " + counted_text(cut.result.num_damaged, "damaged line") + " dropped");
    }
    if (cut.result.num_later + cut.result.num_damaged > 0) drop_lines(path, cut);
    return cut.result;
}

}  // namespace vpp
