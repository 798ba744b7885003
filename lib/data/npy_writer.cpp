#include "data/npy_writer.hpp"

#include <array>

#include "base/error.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr size_t kAlignmentBytes = 64;
constexpr size_t kFixedBytes = 10;  // magic, version, length of the header

std::string_view descr_of(DType dtype) {
    switch (dtype) {
        case DType::F32:
            return "<f4";
        case DType::F64:
            return "<f8";
        case DType::F16:
            return "<f2";
        case DType::I64:
            return "<i8";
        case DType::I32:
            return "<i4";
        case DType::I16:
            return "<i2";
        case DType::I8:
            return "|i1";
        case DType::U8:
            return "|u1";
        case DType::U16:
            return "<u2";
        case DType::U32:
            return "<u4";
        case DType::Bool:
            return "|b1";
        case DType::BF16:
            break;
    }
    throw Error(ErrorKind::BadData,
                "a .npy file cannot hold " + std::string(name_of(dtype)) + "; let the model return it as float32");
}

}  // namespace

std::string npy_header(DType dtype, const std::vector<int64_t>& shape) {
    std::string text = "{'descr': '" + std::string(descr_of(dtype)) + "', 'fortran_order': False, 'shape': (";
    for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    text += shape.size() == 1 ? ",), }" : "), }";
    const size_t used = kFixedBytes + text.size() + 1;  // a line end closes it
    text.append((kAlignmentBytes - used % kAlignmentBytes) % kAlignmentBytes, ' ');
    text += '\n';
    const size_t length = text.size();
    check(length < 1 << 16, "a version 1 header has at most 65535 bytes");
    std::string header("\x93NUMPY\x01\x00", 8);
    header += static_cast<char>(length & 0xff);
    header += static_cast<char>(length >> 8);
    return header + text;
}

NpyWriter::NpyWriter(const fs::path& path, DType dtype, const std::vector<int64_t>& shape)
    : place_(path, /*overwrite=*/true),
      file_(place_.temporary()),
      missing_bytes_(num_elements(shape) * static_cast<int64_t>(size_of(dtype))) {
    file_.write_text(npy_header(dtype, shape));
}

void NpyWriter::write(std::span<const std::byte> values) {
    missing_bytes_ -= static_cast<int64_t>(values.size());
    check(missing_bytes_ >= 0, "no more values are written than the header says");
    file_.write(values);
}

void NpyWriter::finish() {
    check(missing_bytes_ == 0, "as many values are written as the header says");
    file_.finish();
    is_finished_ = true;
}

void NpyWriter::publish() {
    if (!is_finished_) finish();
    place_.publish();
}

}  // namespace vpp
