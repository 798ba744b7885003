#include <algorithm>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "data/digest.hpp"
#include "data/kinds.hpp"
#include "data/npy.hpp"

namespace vpp::detail {

namespace {

/// One .npy file a field; sample i is row i of each.
class Arrays : public Dataset {
  public:
    Arrays(Fields fields, std::vector<NpyFile> files) : fields_(std::move(fields)), files_(std::move(files)) {}

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        check_read(fields_, sample, field, out.size());
        const NpyFile& file = files_[static_cast<size_t>(field)];
        file.read(static_cast<uint64_t>(sample) * out.size(), out);
        // A bool of another value than 0 and 1 is undefined behaviour in compiled code.
        const auto is_bool = [](std::byte b) { return b <= std::byte{1}; };
        if (file.dtype() == DType::Bool && !std::all_of(out.begin(), out.end(), is_bool)) {
            throw Error(ErrorKind::BadData, where(sample, field) + ": a bool is neither 0 nor 1; the file is damaged");
        }
    }

    std::string where(int64_t sample, int field) const override {
        return files_.at(static_cast<size_t>(field)).file().path().string() + ", sample " + std::to_string(sample);
    }

    std::string digest() const override {
        Hasher hasher;
        hasher.add_text("arrays");
        for (size_t i = 0; i < files_.size(); ++i) {
            hasher.add_text(fields_.fields[i].name);
            add_file(hasher, files_[i].file());
        }
        return to_hex(hasher.digest());
    }

  private:
    Fields fields_;
    std::vector<NpyFile> files_;  // by field
};

void check_rows(const NpyFile& file, const std::string& path) {
    const std::string shape = shape_text(file.shape());
    if (file.shape().empty()) {
        throw Error(ErrorKind::BadData, path + ": the first dim counts samples (got shape " + shape +
                                            ", expected at least one dim); try np.save of array[None]");
    }
    if (file.data_bytes() == 0) throw Error(ErrorKind::BadData, path + ": holds no values (got shape " + shape + ")");
}

}  // namespace

std::unique_ptr<Dataset> open_arrays(const Plan& plan, Subset subset) {
    if (plan.data.train_fields.empty()) {
        throw Error(ErrorKind::Plan,
                    "data.kind arrays needs the table data.train; try [data.train] image = \"image.npy\"",
                    plan.where("data.train"));
    }
    const NamedTexts& paths = subset == Subset::Train ? plan.data.train_fields : plan.data.val_fields;
    if (paths.empty()) return nullptr;
    Fields fields;
    std::vector<NpyFile> files;
    for (const auto& [name, path] : paths) {
        NpyFile file(path);
        check_rows(file, path);
        const int64_t num_samples = file.shape().front();
        if (!files.empty() && num_samples != fields.num_samples) {
            throw Error(ErrorKind::BadData, path + ": all fields need the same number of samples (got " +
                                                std::to_string(num_samples) + ", expected " +
                                                std::to_string(fields.num_samples) + " as in " + paths.front().second +
                                                ")");
        }
        fields.num_samples = num_samples;
        fields.fields.push_back({name, file.dtype(), {file.shape().begin() + 1, file.shape().end()}, 0});
        files.push_back(std::move(file));
    }
    return std::make_unique<Arrays>(std::move(fields), std::move(files));
}

}  // namespace vpp::detail
