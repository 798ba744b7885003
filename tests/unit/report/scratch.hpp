#pragma once
// A folder for the files of one test, and a log that is kept.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/log.hpp"

namespace vpp::test {

class Scratch : public testing::Test {
  protected:
    Scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "vpp-report-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) throw std::runtime_error("no scratch folder");
        folder_ = pattern;
        logger_ = make_stream_logger(log_);
    }
    ~Scratch() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    static std::string content(const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void put(const std::filesystem::path& path, const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
    }

    std::filesystem::path folder_;
    std::ostringstream log_;
    Logger logger_;
};

}  // namespace vpp::test
