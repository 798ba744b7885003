#include "data/windows.hpp"

#include <bit>
#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "data/concatenation.hpp"
#include "data/digest.hpp"

namespace vpp::detail {

namespace {

static_assert(std::endian::native == std::endian::little, "token files are read as they lie on disk");

/// Copies tokens of type T, `out.size() / 8` of them, to int64.
template <typename T>
void widen(const std::byte* tokens, std::span<std::byte> out) {
    for (size_t i = 0; i < out.size() / sizeof(int64_t); ++i) {
        T token;
        std::memcpy(&token, tokens + i * sizeof(T), sizeof(T));
        const auto value = static_cast<int64_t>(token);
        std::memcpy(out.data() + i * sizeof(int64_t), &value, sizeof(value));
    }
}

class Windows : public Dataset {
  public:
    Windows(std::string kind, std::vector<TokenFile> files, int64_t sequence_length, int64_t bound)
        : kind_(std::move(kind)), files_(std::move(files)), sequence_length_(sequence_length) {
        for (const TokenFile& file : files_) {
            const int64_t num_windows = (file.num_tokens - 1) / sequence_length_;
            check(num_windows > 0, "every file has a window");
            windows_.add(num_windows);
        }
        fields_.num_samples = windows_.num_samples();
        for (const char* name : {"tokens", "targets"}) {
            fields_.fields.push_back({name, DType::I64, {sequence_length_}, bound});
        }
    }

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        check_read(fields_, sample, field, out.size());
        const auto [index, window] = windows_.locate(sample);
        // Field 1, the targets, is one token further on.
        read_tokens(files_[index], window * sequence_length_ + field, out);
    }

    std::string where(int64_t sample, int) const override {
        const auto [index, window] = windows_.locate(sample);
        return files_[index].file.path().string() + ", sample " + std::to_string(sample) + " (tokens from " +
               std::to_string(window * sequence_length_) + " on)";
    }

    std::vector<int64_t> file_samples() const override { return windows_.file_samples(); }

    std::string digest() const override {
        Hasher hasher;
        hasher.add_text(kind_);
        for (const TokenFile& file : files_) add_file(hasher, file.file);
        return to_hex(hasher.digest());
    }

  private:
    std::string kind_;
    std::vector<TokenFile> files_;
    Concatenation windows_;
    int64_t sequence_length_;
    Fields fields_;
};

}  // namespace

void read_tokens(const TokenFile& file, int64_t first, std::span<std::byte> out) {
    Bytes tokens(out.size() / sizeof(int64_t) * file.token_bytes);
    file.file.read(file.offset_bytes + static_cast<size_t>(first) * file.token_bytes, tokens);
    if (file.token_bytes == 1) return widen<uint8_t>(tokens.data(), out);
    if (file.token_bytes == 2) return widen<uint16_t>(tokens.data(), out);
    if (file.token_bytes == 4) return widen<uint32_t>(tokens.data(), out);
    return widen<int64_t>(tokens.data(), out);
}

const std::vector<std::string>& files_of(const Plan& plan, Subset subset) {
    return subset == Subset::Train ? plan.data.train : plan.data.val;
}

void check_token_keys(const Plan& plan) {
    if (plan.data.train.empty()) {
        throw Error(ErrorKind::Plan, "data.kind " + plan.data.kind + " needs files; try data.train = [\"tokens.bin\"]",
                    plan.where("data.train"));
    }
    if (plan.data.sequence_length < 1) {
        throw Error(ErrorKind::Plan,
                    "data.kind " + plan.data.kind + " needs data.sequence_length (got " +
                        std::to_string(plan.data.sequence_length) + ", expected at least 1); try 128",
                    plan.where("data.sequence_length"));
    }
}

std::unique_ptr<Dataset> make_windows(std::string kind, std::vector<TokenFile> files, int64_t sequence_length,
                                      int64_t bound) {
    check(sequence_length >= 1 && !files.empty(), "windows need files and a length");
    for (const TokenFile& file : files) {
        if (file.num_tokens > sequence_length) continue;
        throw Error(ErrorKind::BadData,
                    file.file.path().string() + ": too short for one sample (got " + std::to_string(file.num_tokens) +
                        " tokens, expected at least data.sequence_length + 1, and " + "data.sequence_length is " +
                        std::to_string(sequence_length) + "); try a shorter sequence, or leave the file out");
    }
    return std::make_unique<Windows>(std::move(kind), std::move(files), sequence_length, bound);
}

}  // namespace vpp::detail
