#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "data/concatenation.hpp"
#include "data/decode.hpp"
#include "data/digest.hpp"
#include "data/kinds.hpp"

namespace vpp::detail {

namespace {

// The binary version: a byte for the label, then 32 x 32 bytes of red, of green and of blue.
// Source: https://www.cs.toronto.edu/~kriz/cifar.html
constexpr int64_t kSide = 32, kChannels = 3, kClasses = 10;
constexpr uint64_t kLabelBytes = 1, kImageBytes = kChannels * kSide * kSide, kRecordBytes = kLabelBytes + kImageBytes;

class Cifar10 : public Dataset {
  public:
    explicit Cifar10(std::vector<InputFile> files) : files_(std::move(files)) {
        for (const InputFile& file : files_) {
            records_.add(static_cast<int64_t>(file.size_bytes() / kRecordBytes));
        }
        fields_.num_samples = records_.num_samples();
        fields_.fields = {{"image", DType::F32, {kChannels, kSide, kSide}, 0}, {"label", DType::I64, {}, kClasses}};
    }

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        check_read(fields_, sample, field, out.size());
        const auto [index, record] = records_.locate(sample);
        const InputFile& file = files_[index];
        const uint64_t begin = static_cast<uint64_t>(record) * kRecordBytes;
        if (field == 0) {
            Bytes stored(kImageBytes);
            file.read(begin + kLabelBytes, stored);
            return decode_picture(stored, out);
        }
        Bytes stored(kLabelBytes);
        file.read(begin, stored);
        if (std::to_integer<int64_t>(stored[0]) >= kClasses) {
            throw Error(ErrorKind::BadData, where(sample, field) + ": the label is " +
                                                std::to_string(std::to_integer<int>(stored[0])) +
                                                " (expected 0 to 9); the file is damaged, or is no CIFAR-10");
        }
        decode_labels(stored, out);
    }

    std::string where(int64_t sample, int) const override {
        const auto [index, record] = records_.locate(sample);
        return files_[index].path().string() + ", sample " + std::to_string(sample) + " (record " +
               std::to_string(record) + ")";
    }

    std::vector<int64_t> file_samples() const override { return records_.file_samples(); }

    std::string digest() const override {
        Hasher hasher;
        hasher.add_text("cifar10");
        for (const InputFile& file : files_) add_file(hasher, file);
        return to_hex(hasher.digest());
    }

  private:
    std::vector<InputFile> files_;
    Concatenation records_;
    Fields fields_;
};

InputFile open_batch(const std::string& path) {
    InputFile file(path);
    if (file.size_bytes() == 0 || file.size_bytes() % kRecordBytes != 0) {
        throw Error(ErrorKind::BadData, path + ": not of CIFAR-10's binary version (got " +
                                            std::to_string(file.size_bytes()) + " bytes, expected a multiple of " +
                                            std::to_string(kRecordBytes) + "); take cifar-10-binary.tar.gz, unpacked");
    }
    return file;
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const Plan& plan, Subset subset) {
    if (plan.data.train.empty()) {
        throw Error(ErrorKind::Plan, "data.kind cifar10 needs files; try data.train = [\"data_batch_1.bin\"]",
                    plan.where("data.train"));
    }
    std::vector<InputFile> files;
    for (const std::string& path : subset == Subset::Train ? plan.data.train : plan.data.val) {
        files.push_back(open_batch(path));
    }
    return files.empty() ? nullptr : std::make_unique<Cifar10>(std::move(files));
}

}  // namespace vpp::detail
