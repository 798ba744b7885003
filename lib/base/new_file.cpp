#include "base/new_file.hpp"

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

fs::path folder_of(const fs::path& path) {
    return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

NewFile::NewFile(fs::path path, bool overwrite)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp-" + std::to_string(::getpid())) {
    std::error_code ignored;
    if (!path_.has_filename() || fs::is_directory(path_, ignored)) {
        throw Error(ErrorKind::Output, path_.string() + " is a folder; name a file");
    }
    if (!fs::is_directory(folder_of(path_), ignored)) {
        throw Error(ErrorKind::Output, "the folder " + folder_of(path_).string() + " is not there; make it first");
    }
    if (!overwrite && fs::exists(fs::symlink_status(path_, ignored))) {
        throw Error(ErrorKind::Output,
                    path_.string() + " is there already; name another file, or replace it with --overwrite");
    }
}

NewFile::~NewFile() {
    std::error_code ignored;
    fs::remove(temporary_, ignored);
}

void NewFile::publish() {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
        throw Error(ErrorKind::Io, "cannot rename to " + path_.string() + ": " + std::strerror(errno));
    }
    sync_folder(folder_of(path_));
}

}  // namespace vpp
