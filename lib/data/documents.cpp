#include "data/documents.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "data/concatenation.hpp"
#include "data/digest.hpp"

namespace vpp::detail {

namespace {

/// Of a sample: its document, and where it lies in the file.
struct Piece {
    size_t document = 0;
    int64_t first = 0;        ///< token
    int64_t num_targets = 0;  ///< 1 to T
};

class Documents : public Dataset {
  public:
    Documents(std::vector<DocumentFile> files, int64_t sequence_length, int64_t ignored_target)
        : files_(std::move(files)), sequence_length_(sequence_length), ignored_target_(ignored_target) {
        for (const DocumentFile& file : files_) {
            std::vector<int64_t> ends;
            int64_t end = 0;
            for (size_t i = 0; i + 1 < file.begins.size(); ++i) {
                const int64_t num_targets = std::max<int64_t>(file.begins[i + 1] - file.begins[i] - 1, 0);
                end += (num_targets + sequence_length_ - 1) / sequence_length_;
                ends.push_back(end);
            }
            if (end == 0) {
                throw Error(ErrorKind::BadData, file.tokens.file.path().string() + ": none of its " +
                                                    std::to_string(ends.size()) +
                                                    " documents has two tokens; leave the file out");
            }
            samples_.add(end);
            piece_ends_.push_back(std::move(ends));
        }
        fields_.num_samples = samples_.num_samples();
        for (const char* name : {"tokens", "targets"}) {
            fields_.fields.push_back({name, DType::I64, {sequence_length_}, 0});
        }
    }

    const Fields& fields() const override { return fields_; }

    void read(int64_t sample, int field, std::span<std::byte> out) const override {
        check_read(fields_, sample, field, out.size());
        const auto [index, number] = samples_.locate(sample);
        const Piece piece = find_piece(index, number);
        const auto held_bytes = static_cast<size_t>(piece.num_targets) * sizeof(int64_t);
        read_tokens(files_[index].tokens, piece.first + field, out.first(held_bytes));
        const int64_t rest = field == 0 ? 0 : ignored_target_;
        for (size_t at = held_bytes; at < out.size(); at += sizeof rest) {
            std::memcpy(out.data() + at, &rest, sizeof rest);
        }
    }

    std::string where(int64_t sample, int) const override {
        const auto [index, number] = samples_.locate(sample);
        const Piece piece = find_piece(index, number);
        return files_[index].tokens.file.path().string() + ", sample " + std::to_string(sample) + " (document " +
               std::to_string(piece.document) + ", tokens from " + std::to_string(piece.first) + " on)";
    }

    std::vector<int64_t> file_samples() const override { return samples_.file_samples(); }

    std::optional<int64_t> filler(int field) const override {
        return field == 1 ? std::optional(ignored_target_) : std::nullopt;
    }

    std::string digest() const override {
        Hasher hasher;
        hasher.add_text("documents");
        for (const DocumentFile& file : files_) {
            add_file(hasher, file.tokens.file);
            add_file(hasher, file.index);
        }
        return to_hex(hasher.digest());
    }

  private:
    Piece find_piece(size_t index, int64_t number) const {
        const std::vector<int64_t>& ends = piece_ends_[index];
        const auto document = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), number) - ends.begin());
        const int64_t before = document == 0 ? 0 : ends[document - 1];
        const std::vector<int64_t>& begins = files_[index].begins;
        const int64_t first = begins[document] + (number - before) * sequence_length_;
        return {document, first, std::min(sequence_length_, begins[document + 1] - 1 - first)};
    }

    std::vector<DocumentFile> files_;
    std::vector<std::vector<int64_t>> piece_ends_;  // by file and document: samples up to and with it
    Concatenation samples_;
    int64_t sequence_length_, ignored_target_;
    Fields fields_;
};

}  // namespace

std::unique_ptr<Dataset> make_documents(std::vector<DocumentFile> files, int64_t sequence_length,
                                        int64_t ignored_target) {
    check(sequence_length >= 1 && !files.empty(), "documents need files and a length");
    return std::make_unique<Documents>(std::move(files), sequence_length, ignored_target);
}

}  // namespace vpp::detail
