#pragma once
// Helpers of the data tests: a temporary folder, files made of inline values, and errors as text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/npy.hpp"

namespace vpp::test {

/// A folder that lives as long as the object.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "vpp_data_XXXXXX").string();
        if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
        path_ = name;
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::string path(const std::string& name) const { return (path_ / name).string(); }

    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path_ / name, std::ios::binary) << bytes;
        return path(name);
    }

  private:
    std::filesystem::path path_;
};

/// A plan whose training data are one file a field.
inline Plan table_plan(const std::string& kind, NamedTexts train) {
    Plan plan;
    plan.data.kind = kind;
    plan.data.train_fields = std::move(train);
    return plan;
}

/// The values' bytes, one after another.
template <typename T>
std::string raw(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The bytes of a .npy file; the header says what it is told, right or wrong.
inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       const std::string& fortran_order = "False", char version = 1) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape + ", }";
    while ((header.size() + 11) % 64 != 0) header += ' ';
    header += '\n';
    std::string length{static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    if (version > 1) length += std::string(2, '\0');
    return "\x93NUMPY" + std::string{version, '\0'} + length + header + data;
}

/// Value i of an array of float32.
inline float float_at(const NpyFile& file, int i) {
    float value = 0;
    file.read(static_cast<uint64_t>(i) * sizeof(value), std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

/// One field of one sample as values.
template <typename T>
std::vector<T> read_values(const Dataset& dataset, int64_t sample, int field) {
    std::vector<T> values(
        static_cast<size_t>(dataset.fields().fields.at(static_cast<size_t>(field)).bytes_per_sample()) / sizeof(T));
    dataset.read(sample, field, std::as_writable_bytes(std::span(values)));
    return values;
}

/// The message of the Error that `action` throws; fails the test when there is none or its kind is another.
inline std::string error_of(ErrorKind kind, const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(exit_code(error.kind()), exit_code(kind)) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no error was thrown";
    return "";
}

}  // namespace vpp::test

/// Whether the text holds the part; shows both when not.
#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "text: " << (text)
