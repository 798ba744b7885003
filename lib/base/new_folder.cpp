#include "base/new_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// Absolute, without "." and a slash at the end.
fs::path plain(const fs::path& path) {
    if (path.empty()) throw Error(ErrorKind::Output, "a folder's name is empty; name one");
    const fs::path whole = fs::absolute(path).lexically_normal();
    return whole.has_filename() ? whole : whole.parent_path();
}

/// Rename replaces an empty folder and nothing else.
void check_free(const fs::path& path) {
    std::error_code ignored;
    const fs::file_status status = fs::symlink_status(path, ignored);
    if (!fs::exists(status)) return;
    if (!fs::is_directory(status) || !fs::is_empty(path, ignored)) {
        throw Error(ErrorKind::Output, path.string() + " is there already; name another folder");
    }
    if (fs::equivalent(path, fs::current_path(), ignored)) {
        throw Error(ErrorKind::Output, path.string() + " is the current folder; name one that is made in it");
    }
}

/// Makes an empty folder beside `path`, under a name that nobody has: one of the same name may be what a process of the
/// same number has left.
fs::path make_folder_beside(const fs::path& path) {
    const fs::path around = path.parent_path();
    const std::string name = "." + path.filename().string() + ".tmp-" + std::to_string(::getpid());
    for (int copy = 1;; ++copy) {
        fs::path temporary = around / (copy == 1 ? name : name + "-" + std::to_string(copy));
        std::error_code error;
        if (fs::create_directory(temporary, error)) return temporary;
        if (error && error != std::errc::file_exists) {
            throw Error(ErrorKind::Output, "cannot make a folder in " + around.string() + ": " + error.message());
        }
    }
}

}  // namespace

NewFolder::NewFolder(const fs::path& path) : path_(plain(path)) {
    check_free(path_);
    const fs::path around = path_.parent_path();
    std::error_code error;
    if (!fs::is_directory(around, error)) {
        throw Error(ErrorKind::Output, "the folder " + around.string() + " is not there; make it first");
    }
    temporary_ = make_folder_beside(path_);
}

NewFolder::~NewFolder() {
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::publish() {
    check_free(path_);
    sync_folder(temporary_);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
        throw Error(ErrorKind::Io, "cannot rename to " + path_.string() + ": " + std::strerror(errno));
    }
    temporary_.clear();
    sync_folder(path_.parent_path());
}

}  // namespace vpp
