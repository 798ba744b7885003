#include "data/rows.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "data/digest.hpp"

namespace vpp::detail {

namespace {

std::string where_row(const RowFile& rows, int64_t row) {
    const std::string array = rows.array.empty() ? "" : ":" + rows.array;
    return rows.file.path().string() + array + ", sample " + std::to_string(row);
}

class Rows : public Dataset {
  public:
    Rows(std::string kind, std::vector<RowFile> files) : kind_(std::move(kind)), files_(std::move(files)) {
        for (const RowFile& file : files_) fields_.fields.push_back(file.field);
        fields_.num_samples = files_.front().num_rows;
    }

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        check_read(fields_, sample, field, out.size());
        const RowFile& from = files_[static_cast<size_t>(field)];
        read_values(from, sample * num_elements(from.field.shape), out);
    }

    std::string where(int64_t sample, int field) const override {
        return where_row(files_.at(static_cast<size_t>(field)), sample);
    }

    std::string digest() const override {
        Hasher hasher;
        hasher.add_text(kind_);
        for (const RowFile& from : files_) {
            hasher.add_text(from.field.name);
            if (!from.array.empty()) hasher.add_text(from.array);
            add_file(hasher, from.file);
        }
        return to_hex(hasher.digest());
    }

  private:
    std::string kind_;
    std::vector<RowFile> files_;  // by field
    Fields fields_;
};

}  // namespace

void read_values(const RowFile& rows, int64_t first, std::span<std::byte> out) {
    const int64_t row_values = num_elements(rows.field.shape);
    const size_t stored_bytes = rows.row_bytes / static_cast<size_t>(row_values);  // of a value
    const uint64_t begin = rows.offset_bytes + static_cast<uint64_t>(first) * stored_bytes;
    if (rows.decode) {
        Bytes stored(out.size() / size_of(rows.field.dtype) * stored_bytes);
        rows.file.read(begin, stored);
        rows.decode(stored, out);
    } else {
        rows.file.read(begin, out);
    }
    if (rows.field.dtype != DType::Bool) return;
    // A bool of another value than 0 and 1 is undefined behaviour in compiled code.
    const auto bad = std::ranges::find_if(out, [](std::byte b) { return b > std::byte{1}; });
    if (bad == out.end()) return;
    throw Error(ErrorKind::BadData, where_row(rows, (first + (bad - out.begin())) / row_values) +
                                        ": a bool is neither 0 nor 1; the file is damaged");
}

std::unique_ptr<Dataset> open_rows(const Plan& plan, Subset subset, OpenRowFile open) {
    const std::string& kind = plan.data.kind;
    if (plan.data.train_fields.empty()) {
        throw Error(ErrorKind::Plan,
                    "data.kind " + kind + " needs the table data.train; try [data.train] image = \"image.npy\"",
                    plan.where("data.train"));
    }
    const NamedTexts& paths = subset == Subset::Train ? plan.data.train_fields : plan.data.val_fields;
    if (paths.empty()) return nullptr;
    std::vector<RowFile> files;
    for (const auto& [name, path] : paths) {
        RowFile file = open(path, name);
        file.field.name = name;
        if (!files.empty() && file.num_rows != files.front().num_rows) {
            throw Error(ErrorKind::BadData, path + ": all fields need the same number of samples (got " +
                                                std::to_string(file.num_rows) + ", expected " +
                                                std::to_string(files.front().num_rows) + " as in " +
                                                paths.front().second + ")");
        }
        files.push_back(std::move(file));
    }
    return std::make_unique<Rows>(kind, std::move(files));
}

}  // namespace vpp::detail
