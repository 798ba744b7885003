#include "base/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr int kMostLinks = 40;  // as in Linux

fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// What a path leads to, be it there or not.
fs::path behind_links(fs::path path) {
    std::error_code error;
    for (int links = 0; links < kMostLinks; ++links) {
        const fs::path target = fs::read_symlink(path, error);
        if (error) break;
        path = folder_of(path) / target;
    }
    return path;
}

[[noreturn]] void refuse_taken(const fs::path& path) {
    throw Error(ErrorKind::Output,
                path.string() + " is there already; name another file, or replace it with --overwrite");
}

/// Makes an empty file beside `path`, under a name that nobody has.
fs::path make_beside(const fs::path& path) {
    const std::string name = path.string() + ".tmp-" + std::to_string(::getpid());
    for (int copy = 1;; ++copy) {
        fs::path temporary = copy == 1 ? name : name + "-" + std::to_string(copy);
        const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd >= 0) {
            ::close(fd);
            return temporary;
        }
        if (errno == EEXIST) continue;
        const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EIO;
        throw Error(is_full ? ErrorKind::Io : ErrorKind::Output,
                    "cannot create " + temporary.string() + ": " + std::strerror(errno));
    }
}

/// Where the file system cannot rename without replacing, by a second name for the file. Whether it succeeded.
bool rename_to_free(const fs::path& from, const fs::path& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    return ::link(from.c_str(), to.c_str()) == 0 && ::unlink(from.c_str()) == 0;
}

}  // namespace

NewFile::NewFile(fs::path path, bool overwrite)
    : path_(std::move(path)), target_(behind_links(path_)), overwrite_(overwrite) {
    std::error_code ignored;
    const fs::file_status status = fs::status(path_, ignored);
    if (!path_.has_filename() || fs::is_directory(status)) {
        throw Error(ErrorKind::Output, path_.string() + " is a folder; name a file");
    }
    if (!fs::is_directory(folder_of(target_), ignored)) {
        throw Error(ErrorKind::Output, "the folder " + folder_of(target_).string() + " is not there; make it first");
    }
    if (fs::is_other(status)) throw Error(ErrorKind::Output, path_.string() + " is a device or a pipe; name a file");
    if (!overwrite_ && fs::exists(fs::symlink_status(path_, ignored))) refuse_taken(path_);
    temporary_ = make_beside(target_);
}

NewFile::~NewFile() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void NewFile::remove_old() const {
    if (!overwrite_) return;
    if (::unlink(target_.c_str()) == 0) return sync_folder(folder_of(target_));
    if (errno != ENOENT) throw Error(ErrorKind::Io, "cannot remove " + target_.string() + ": " + std::strerror(errno));
}

void NewFile::publish() {
    const bool is_renamed =
        overwrite_ ? ::rename(temporary_.c_str(), target_.c_str()) == 0 : rename_to_free(temporary_, target_);
    if (!is_renamed) {
        if (!overwrite_ && errno == EEXIST) refuse_taken(path_);
        throw Error(ErrorKind::Io, "cannot rename to " + target_.string() + ": " + std::strerror(errno));
    }
    temporary_.clear();
    sync_folder(folder_of(target_));
}

}  // namespace vpp
